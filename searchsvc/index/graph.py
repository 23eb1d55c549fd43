"""The notes of a vault and the links between them, as a graph that answers questions.

Read once from pinned catalogs, then free of them. A node is a note; an edge leads from one note to another,
however many links make it up. Links to the note itself are none, and links that lead nowhere are counted
apart.
"""

import difflib
import heapq
import json
import posixpath
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, get_args

from searchsvc.errors import NotFound, QueryError
from searchsvc.graph_items import DeadLink, GraphNode, GraphQuery, GraphReply, GraphStep
from searchsvc.index.catalog import Catalog
from searchsvc.index.edges import Edges
from searchsvc.index.node_names import Named, Names, Spell, and_more, fold, make_ids, plain, quote

UNTYPED = "untyped"
MAX_DISTANCE = 5
MAX_LISTED = 100
MAX_MISSING = 100_000
DEFAULT_DISTANCE = 1
DEFAULT_LISTED = 10
_EXAMPLES = 3
_TYPES_SHOWN = 12
_COMPARED = 200
_MAX_SPLITS = 8
_ARROW = re.compile(r"\s*(?:-*>|→)\s*")


class Graph:
    """The graph of one generation; it never changes, so threads may share it."""

    def __init__(
        self, catalogs: Sequence[tuple[str, Catalog]], root: str = "", spell: Spell = lambda asked: ""
    ) -> None:
        """Take the name and the pinned catalog of every root; ``root`` narrows the graph to one of them.

        The catalogs are only read here. All of them are needed even for one root: they say which paths
        must be told apart by the name of their root. ``spell`` knows the notes by further names.
        """
        self._spell = spell
        names = [(name, catalog, catalog.names()) for name, catalog in catalogs]
        holders = Counter(path for _, _, rows in names for _, path, _, _ in rows)
        chosen = [part for part in names if root in ("", part[0])]
        notes = [
            (Named(name, path, title, tuple(aliases)), (name, note))
            for name, _, rows in chosen
            for note, path, title, aliases in rows
        ]
        ids = make_ids([named for named, _ in notes], several_roots=len(chosen) > 1)
        order = sorted(range(len(notes)), key=lambda place: (fold(ids[place]), ids[place]))
        self._ids = [ids[place] for place in order]
        self._notes = [notes[place][0] for place in order]
        self._locations = [
            f"{note.root}:{note.path}" if holders[note.path] > 1 else note.path for note in self._notes
        ]
        places = {notes[place][1]: rank for rank, place in enumerate(order)}
        self._read_links(chosen, places)
        self._read_properties(chosen, places)

    def _read_links(
        self, catalogs: Iterable[tuple[str, Catalog, Any]], places: dict[tuple[str, int], int]
    ) -> None:
        size = len(self._ids)
        links = Counter[int]()
        self._dead: dict[int, list[tuple[int, str]]] = {}
        for root, catalog, _ in catalogs:
            place_of = {note: place for (name, note), place in places.items() if name == root}
            links.update(
                place_of[source] * size + place_of[target]
                for source, target in catalog.edges()
                if source != target
            )
            for _, note, link, _ in catalog.links(open_only=True):
                folder = posixpath.dirname(self._notes[place_of[note]].path)
                target = plain(link.target if link.wiki else _joined(folder, link.target))
                self._dead.setdefault(place_of[note], []).append((link.line, target))
        for found in self._dead.values():
            found.sort()
        self._edges = Edges(size, links)

    def _read_properties(
        self, catalogs: Iterable[tuple[str, Catalog, Any]], places: dict[tuple[str, int], int]
    ) -> None:
        self._types: list[tuple[str, ...]] = [()] * len(self._ids)
        self._tags: list[tuple[str, ...]] = [()] * len(self._ids)
        for root, catalog, _ in catalogs:
            for note, tags, properties in catalog.tags_and_properties():
                place = places[root, note]
                self._types[place], self._tags[place] = _types(properties), tuple(tags)

    # Asking

    def ask(self, query: str, node_id: str = "", depth: int | None = None) -> GraphReply:
        """Answer one of the queries of ``GraphQuery``.

        ``node_id`` is a type for ``search_type`` and ``a>b`` for ``path``; ``depth`` is how far
        ``neighbors`` go, how many ``most_connected`` notes are wanted, and how many targets of dead links
        ``stats`` lists. What a query does not use is not looked at. Raises ``QueryError`` for what cannot
        be asked or is ambiguous, ``NotFound`` for a note or type that is not there.
        """
        far, many = (DEFAULT_DISTANCE, DEFAULT_LISTED) if depth is None else (depth, depth)
        ways: dict[str, Callable[[], GraphReply]] = {
            "stats": lambda: self.stats(many),
            "node": lambda: self.node(node_id),
            "neighbors": lambda: self.neighbors(node_id, far),
            "search_type": lambda: self.of_type(node_id),
            "most_connected": lambda: self.most_connected(many),
            "isolated": self.isolated,
            "path": lambda: self.path_of(node_id),
        }
        if query not in ways:
            known = get_args(GraphQuery)
            near = difflib.get_close_matches(query[:40].lower(), known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise QueryError(f"query is {quote(query)}, expected one of: {', '.join(known)}{hint}")
        return ways[query]()

    def stats(self, count: int = DEFAULT_LISTED) -> GraphReply:
        """Count notes, edges, dead links and types; list ``count`` (1 to 100,000) targets of dead links."""
        _check(count, MAX_MISSING, "how many targets of dead links are listed")
        missing = self._missing()
        return GraphReply(
            "stats",
            counts={
                "nodes": len(self._ids),
                "edges": self._edges.total,
                "links": self._edges.links,
                "dead_links": sum(map(len, self._dead.values())),
                "dead_targets": len(missing),
                "isolated": self._isolated,
            },
            types=self._type_counts,
            dead=tuple(missing[:count]),
        )

    def node(self, node_id: str) -> GraphReply:
        """Return a note with its types, aliases and tags, the notes next to it, and its dead links."""
        place = self._find(node_id, "node")
        note = self._notes[place]
        dead = (DeadLink(target, self._ids[place], line) for line, target in self._dead.get(place, ()))
        return GraphReply(
            "node",
            asked=self._ids[place],
            names={"types": self._types[place], "aliases": note.aliases, "tags": self._tags[place]},
            nodes=(self._node(place),),
            steps=self._around(place, 1),
            dead=tuple(dead),
        )

    def neighbors(self, node_id: str, depth: int = DEFAULT_DISTANCE) -> GraphReply:
        """Return the notes within ``depth`` (1 to 5) links of a note, whichever way these go.

        Each is told with the note before it, the first by order of ids where there are several.
        """
        _check(depth, MAX_DISTANCE, "how many links away")
        place = self._find(node_id, "neighbors")
        steps = self._around(place, depth)
        counts = Counter(str(step.distance) for step in steps)
        return GraphReply(
            "neighbors", self._ids[place], dict(counts), nodes=(self._node(place),), steps=steps
        )

    def of_type(self, wanted: str) -> GraphReply:
        """Return the notes of a type in any letter case, or those ``untyped``, by id."""
        name = fold(_unlinked(wanted))
        known = {fold(spelled): spelled for spelled, _ in self._type_counts}
        if name not in known:
            raise self._no_type(wanted, known)
        places = [
            place
            for place, types in enumerate(self._types)
            if name in (map(fold, types) if types else (UNTYPED,))
        ]
        return GraphReply("search_type", known[name], nodes=tuple(map(self._node, places)))

    def most_connected(self, count: int = DEFAULT_LISTED) -> GraphReply:
        """Return the ``count`` (1 to 100) notes with the most edges, in and out, the best first.

        Notes without edges are none of them.
        """
        _check(count, MAX_LISTED, "how many notes")
        places = self._hubs(count)
        total = {"nodes": len(self._ids), "isolated": self._isolated}
        return GraphReply("most_connected", counts=total, nodes=tuple(map(self._node, places)))

    def isolated(self) -> GraphReply:
        """Return the notes without edges, by id."""
        places = (place for place in range(len(self._ids)) if not self._edges.degree(place))
        return GraphReply("isolated", nodes=tuple(map(self._node, places)))

    def path_of(self, pair: str) -> GraphReply:
        """Return the path between two notes given as ``a>b``; see ``path``."""
        # A sign may be part of a name.
        signs = [*(sign.span() for sign in _ARROW.finditer(pair)), *(_spans(pair, ">"))]
        splits = dict.fromkeys((pair[:start].strip(), pair[end:].strip()) for start, end in signs)
        errors = []
        for a, b in [both for both in splits if all(both)][:_MAX_SPLITS]:
            try:
                return self.path(a, b)
            except NotFound as error:
                errors.append(error)
        if errors:
            raise errors[0]
        hubs = [self._ids[place] for place in self._hubs(2)]
        example = f", for example {'>'.join(hubs)!r}" if len(hubs) > 1 else ""
        raise QueryError(f"node_id is {quote(pair)}, expected two notes as 'a>b'{example}")

    def path(self, a: str, b: str) -> GraphReply:
        """Return a shortest path from one note to another.

        It follows links in their direction, if there is such a path, else in any. A path that is shorter
        because it goes against links is told as well. Without any, ``counts`` say how many notes can be
        reached from either.
        """
        start, goal = self._find(a, "path"), self._find(b, "path")
        if start == goal:
            raise QueryError(f"{quote(a)} and {quote(b)} are the same note; expected two notes as 'a>b'")
        along, across = self._edges.along(start, goal), self._edges.across(start, goal)
        counts = {}
        if not across:
            counts = {"from": self._edges.part(start), "to": self._edges.part(goal)}
        return GraphReply(
            "path",
            f"{self._ids[start]}>{self._ids[goal]}",
            {"along": int(bool(along)), **counts},
            nodes=(self._node(start), self._node(goal)),
            steps=self._steps(along or across),
            shorter=self._steps(across) if len(across) < len(along) else (),
        )

    # Within

    def _no_type(self, wanted: str, known: dict[str, str]) -> NotFound | QueryError:
        near = difflib.get_close_matches(fold(wanted)[:_COMPARED], known, n=3)
        types = [known[name] for name in dict.fromkeys([*near, *known]) if name != UNTYPED]
        there_are = f"there are: {and_more(types, _TYPES_SHOWN)}" if types else "no note here has a type"
        if not wanted.strip():
            return QueryError(f"query 'search_type' needs node_id, a type; {there_are}")
        return NotFound(f"no note has type {quote(wanted)}; {there_are}; {UNTYPED!r} lists those without")

    def _find(self, node_id: str, query: str) -> int:
        if not self._ids:
            raise NotFound(f"no note {quote(node_id)}: no notes are indexed here; see status")
        if not node_id.strip():
            hubs = self._hubs(1)
            example = f"{self._ids[hubs[0]]!r} (the most linked)" if hubs else repr(self._ids[0])
            raise QueryError(
                f"query {query!r} needs node_id, the id of a note, for example {example}; find others with "
                "md_find"
            )
        return self._names.find(node_id)

    @cached_property
    def _names(self) -> Names:
        return Names(
            self._notes, self._ids, [self._ids[place] for place in self._hubs(_EXAMPLES)], self._spell
        )

    @cached_property
    def _isolated(self) -> int:
        return sum(not self._edges.degree(place) for place in range(len(self._ids)))

    @cached_property
    def _type_counts(self) -> tuple[tuple[str, int], ...]:
        """Types with their notes, the most frequent first, each in its most frequent spelling."""
        notes, spelled = Counter[str](), Counter[str]()
        for types in self._types:
            spelled.update(types or (UNTYPED,))
            notes.update({fold(text) for text in types} or (UNTYPED,))
        ordered = sorted(spelled, key=lambda text: (-spelled[text], text))
        usual = {fold(text): text for text in reversed(ordered)}
        return tuple(
            (usual[name], notes[name]) for name in sorted(notes, key=lambda name: (-notes[name], name))
        )

    def _missing(self) -> list[DeadLink]:
        """Return what dead links ask for, the most wanted first."""
        found: dict[str, DeadLink] = {}
        times = Counter[str]()
        for place in sorted(self._dead):
            for line, target in self._dead[place]:
                name = fold(target)
                times[name] += 1
                found.setdefault(name, DeadLink(target, self._ids[place], line))
        return [
            DeadLink(found[name].target, found[name].source, found[name].line, times[name])
            for name in sorted(found, key=lambda name: (-times[name], name))
        ]

    def _hubs(self, count: int) -> list[int]:
        def order(place: int) -> tuple[int, int, int]:
            return -self._edges.degree(place), -len(self._edges.into[place]), place

        linked = (place for place in range(len(self._ids)) if self._edges.degree(place))
        return heapq.nsmallest(count, linked, key=order)

    def _node(self, place: int) -> GraphNode:
        return GraphNode(
            id=self._ids[place],
            location=self._locations[place],
            title=self._notes[place].title,
            types=self._types[place],
            links_in=len(self._edges.into[place]),
            links_out=len(self._edges.out[place]),
            dead=len(self._dead.get(place, ())),
        )

    def _step(self, via: int, place: int, distance: int) -> GraphStep:
        out, into = self._edges.count(via, place), self._edges.count(place, via)
        direction: Literal["out", "in", "both"] = "both" if out and into else "out" if out else "in"
        return GraphStep(self._node(place), direction, self._ids[via], distance, out + into)

    def _around(self, place: int, depth: int) -> tuple[GraphStep, ...]:
        found = self._edges.around(place, depth)
        return tuple(self._step(via, other, distance) for other, via, distance in found)

    def _steps(self, way: list[int]) -> tuple[GraphStep, ...]:
        pairs = pairwise(way)
        return tuple(self._step(via, place, distance) for distance, (via, place) in enumerate(pairs, 1))


def _check(depth: int, most: int, meaning: str) -> None:
    if not 1 <= depth <= most:
        raise QueryError(f"depth is {depth}, expected 1 to {most} ({meaning})")


def _joined(folder: str, target: str) -> str:
    """Return the target of a Markdown link relative to the root, the same from whatever note it is linked."""
    return posixpath.normpath(posixpath.join("" if target.startswith("/") else folder, target.lstrip("/")))


def _spans(text: str, sign: str) -> Iterator[tuple[int, int]]:
    return ((at, at + 1) for at, character in enumerate(text) if character == sign)


def _types(properties: dict[str, Any]) -> tuple[str, ...]:
    """Return what the property ``type`` says, in any letter case of its name; of a list each item."""
    spelled = sorted(
        (key for key in properties if key.lower() == "type"), key=lambda key: (key != "type", key)
    )
    for key in spelled:
        value = properties[key]
        items = value if isinstance(value, list) else [value]
        texts = (
            _unlinked(item if isinstance(item, str) else json.dumps(item))
            for item in items
            if item is not None
        )
        if found := {fold(text): text for text in texts if text}:
            return tuple(found.values())
    return ()


def _unlinked(text: str) -> str:
    """Return the name in a value that is written as a wikilink, as Obsidian's properties often are."""
    text = plain(text)
    if text.startswith("[[") and text.endswith("]]"):
        text = text[2:-2].partition("|")[0].strip()
    return text
