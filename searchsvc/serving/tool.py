"""What every tool is made of."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

MaxTokens = Annotated[int, Field(ge=100)]
"""Budget of the reply; the server has a cap of its own."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A function with what the protocol wants to know of it."""

    function: Callable[..., Any]
    title: str
    aliases: dict[str, str]
    """Other names that callers use for parameters; accepted, not advertised."""
    is_open: bool = False
    """Whether it may reach hosts that the operator allowed."""
    is_reading: bool = True
    """Whether it changes nothing but the index."""
    name: str = ""
    """As callers know it; empty for the name of the function."""

    @property
    def called(self) -> str:
        """The name that is listed."""
        return self.name or self.function.__name__
