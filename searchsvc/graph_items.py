"""The nouns of the graph of notes and links."""

from dataclasses import dataclass, field
from typing import Literal

GraphQuery = Literal["stats", "node", "neighbors", "search_type", "most_connected", "isolated", "path"]


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A note in the graph of links; ``links_in`` and ``links_out`` count other notes, ``dead`` links."""

    id: str
    location: str
    title: str
    types: tuple[str, ...] = ()
    links_in: int = 0
    links_out: int = 0
    dead: int = 0


@dataclass(frozen=True, slots=True)
class GraphStep:
    """A note reached by ``links`` links out of, into or both ways between it and the note ``via``."""

    node: GraphNode
    direction: Literal["out", "in", "both"]
    via: str
    distance: int = 1
    links: int = 1


@dataclass(frozen=True, slots=True)
class DeadLink:
    """A target that no note answers to; of several ``links`` to it the first, by id of its note and line."""

    target: str
    source: str
    line: int
    links: int = 1


@dataclass(frozen=True, slots=True)
class GraphReply:
    """What the graph says to one query; what it does not ask for is empty; ``shorter`` goes against links."""

    query: GraphQuery
    asked: str = ""
    counts: dict[str, int] = field(default_factory=dict)
    names: dict[str, tuple[str, ...]] = field(default_factory=dict)
    types: tuple[tuple[str, int], ...] = ()
    nodes: tuple[GraphNode, ...] = ()
    steps: tuple[GraphStep, ...] = ()
    shorter: tuple[GraphStep, ...] = ()
    dead: tuple[DeadLink, ...] = ()
