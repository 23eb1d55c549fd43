"""What every tool is made of."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

MaxTokens = Annotated[int, Field(description="Budget of the reply", ge=100, le=100_000)]


@dataclass(frozen=True, slots=True)
class Tool:
    """A function with what the protocol wants to know of it."""

    function: Callable[..., Any]
    title: str
    aliases: dict[str, str]
    """Other names that callers use for parameters; accepted, not advertised."""
    is_open: bool = False
    """Whether it may reach hosts that the operator allowed."""
