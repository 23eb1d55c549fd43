"""The nouns of the state of the service: what `status` tells."""

from dataclasses import dataclass

from searchsvc.items import Problem


@dataclass(frozen=True, slots=True)
class ProfileStatus:
    """How far a model has got."""

    model: str
    state: str
    """``ready``, ``loading``, ``not loaded`` or what is wrong."""
    provider: str = ""
    dimension: int = 0
    embedded: int = 0
    """Sections with vectors."""
    wanted: int = 0
    """Sections with text."""
    failed: int = 0
    """Texts that the model did not take."""


@dataclass(frozen=True, slots=True)
class RootStatus:
    """The index of one root."""

    name: str
    path: str
    indexed: bool
    notes: int = 0
    sections: int = 0
    links: int = 0
    unresolved_links: int = 0
    generation: int = 0
    index_bytes: int = 0
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class Status:
    """Everything about the state of the service."""

    roots: tuple[RootStatus, ...]
    profiles: tuple[ProfileStatus, ...]
    activity: str = ""
    """What a background worker is doing; empty when it rests or there is none."""
    advice: tuple[str, ...] = ()
