"""What the graph of links says -> text within a budget, and the same facts for programs.

One line a note: id, path, title if it says more, links in and out. Of what does not fit is said how much
there is, what it costs and which call returns it.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from searchsvc.answering.lines import clip, one_line
from searchsvc.errors import QueryError
from searchsvc.graph_items import DeadLink, GraphNode, GraphReply, GraphStep
from searchsvc.tokens import cost

_MARKS = {"out": "->", "in": "<-", "both": "<->"}
_PART = 4
"""No line takes more than this part of the budget."""
_HEAD_PART = 5
_MAX_LINE = 120
"""Tokens that a line may take of any budget, so that a larger one shows more lines, not longer ones."""
_ROUNDED = 50
"""Budgets are advised in steps of so many tokens."""

_MAX_TYPES = 5

Facts = dict[str, Any]


@dataclass(frozen=True, slots=True)
class GraphPage:
    """One reply of the tool."""

    text: str
    """Fits the budget."""
    facts: Facts
    """JSON-safe; of what the text shows. ``more`` counts the lines that did not fit, ``cursor`` is theirs."""


@dataclass(frozen=True, slots=True)
class _Row:
    line: str
    place: str
    """Which list of the facts it belongs to."""
    item: GraphNode | GraphStep | DeadLink | list[Any] | None
    """What the line tells; made a fact only when the line is shown."""


def render_graph(reply: GraphReply, budget: int, *, cap: int = 20_000, cursor: str = "") -> GraphPage:
    """Write a reply of at most ``budget`` (100 or more) tokens.

    What does not fit is offered by a larger ``max_tokens`` when ``cap``, the most that the server gives,
    allows; else by the ``cursor`` to hand in with the next call. Raises ``QueryError`` for a cursor of
    another call, or of this one before the vault changed.
    """
    most = _rows(reply, _MAX_LINE)
    fingerprint = _fingerprint(reply, len(most))
    start = _start(cursor, fingerprint)
    limit = min(budget // _PART, _MAX_LINE)
    rows = (most if limit == _MAX_LINE else _rows(reply, limit))[start:]

    def head(count: int) -> list[str]:
        return _head(reply, start, count, len(most), min(budget // _HEAD_PART, _MAX_LINE))

    lines = [row.line for row in rows]
    text, count = "\n".join([*head(len(rows)), *lines]), len(rows)
    next_cursor = ""
    if cost(text) > budget:
        whole = [*_head(reply, start, len(rows), len(most), _MAX_LINE), *(row.line for row in most[start:])]
        needed = -(-cost("\n".join(whole)) // _ROUNDED) * _ROUNDED

        def foot(count: int) -> str:
            rest = cost("\n".join(lines[count:]))
            way = f"max_tokens={needed}" if needed <= cap else f'cursor="{start + count}-{fingerprint}"'
            return f"{len(lines) - count} more ({rest} tok): same call with {way}{_nearer(reply)}."

        text, count = _fit(head, lines, foot, budget)
        next_cursor = f"{start + count}-{fingerprint}"
    facts = _facts(reply, rows[:count]) | {"more": len(rows) - count, "cursor": next_cursor}
    return GraphPage(text, facts)


def _fit(
    head: Callable[[int], list[str]], lines: Sequence[str], foot: Callable[[int], str], budget: int
) -> tuple[str, int]:
    """Join as many lines as fit between head and foot; a head that leaves no room loses its end."""
    for kept in (2, 1, 0):

        def joined(count: int, kept: int = kept) -> str:
            return "\n".join([*head(count)[:kept], *lines[:count], foot(count)])

        fits, too_many = 0, len(lines)
        while too_many - fits > 1:
            middle = (fits + too_many) // 2
            if cost(joined(middle)) <= budget:
                fits = middle
            else:
                too_many = middle
        if fits:
            return joined(fits), fits
    return clip(foot(0), budget), 0


# Heads


def _head(reply: GraphReply, start: int, count: int, total: int, limit: int) -> list[str]:
    """Return one or two lines above the rows; the budget of the smallest reply leaves room for no more."""
    span = f"{count}" if count == total else f"{start + 1}-{start + count} of {total}"
    notes, neighbors = ("note", "neighbor") if total == 1 else ("notes", "neighbors")
    if reply.query in ("node", "neighbors"):
        lines = [_node_line(reply.nodes[0], limit)]
        if reply.query == "neighbors":
            by_distance = ", ".join(f"{number} at {far}" for far, number in reply.counts.items())
            counted = f" ({by_distance} links away)" if len(reply.counts) > 1 else ""
            lines.append(f"{span} {neighbors}{counted}" if total else "no neighbors")
    elif reply.query == "stats":
        lines = [_stats_head(reply)]
    elif reply.query == "path":
        lines = [_path_head(reply)]
    elif reply.query == "most_connected":
        everything, alone = reply.counts["nodes"], reply.counts["isolated"]
        without = f" ({alone} without links)" if alone else ""
        lines = [f"{span} most connected {notes}, of all {everything}{without}"]
        if not total:
            lines = [f"no note links to another: all {everything} are isolated" if everything else "no notes"]
    elif reply.query == "isolated":
        lines = [f"{span} {notes} without links to or from other notes" if total else "no isolated notes"]
    else:
        lines = [f"{span} {notes} of type {reply.asked}"]
    return [clip(one_line(line), limit) for line in lines]


def _stats_head(reply: GraphReply) -> str:
    counts = reply.counts
    dead = f"{_count(counts['dead_links'], 'dead link')}"
    if counts["dead_links"]:
        dead += f" to {_count(counts['dead_targets'], 'missing note')}"
    return (
        f"{_count(counts['nodes'], 'note')}, {_count(counts['edges'], 'edge')} "
        f"({_count(counts['links'], 'link')}), {dead}, {counts['isolated']} isolated"
    )


def _path_head(reply: GraphReply) -> str:
    a, b = reply.nodes[0].id, reply.nodes[1].id
    if not reply.steps:
        near, far = _count(reply.counts["from"], "note"), reply.counts["to"]
        return f"no path, forwards or backwards: {near} hang together with {a}, {far} with {b}"
    steps = _count(len(reply.steps), "link")
    if not reply.counts["along"]:
        return f"{steps}, <- followed backwards: {a} > {b}"
    shorter = f" ({len(reply.shorter)} if also backwards)" if reply.shorter else ""
    return f"{steps}, followed forwards{shorter}: {a} > {b}"


# Rows


def _rows(reply: GraphReply, limit: int) -> list[_Row]:
    """Return everything a reply has to list, each line within ``limit`` tokens."""
    if reply.query == "stats":
        kinds = [
            _Row(_ended(f"type {name}", f": {number}", limit), "type_counts", [name, number])
            for name, number in reply.types
        ]
        return [*kinds, *(_dead_row(link, limit, stats=True) for link in reply.dead), *_unlisted(reply)]
    if reply.query == "node":
        names = [_names_row(label, names, limit) for label, names in reply.names.items() if names]
        dead = [_dead_row(link, limit) for link in reply.dead]
        return [*names, *dead, *(_step_row(step, limit, brief=True) for step in reply.steps)]
    if reply.query == "neighbors":
        return [_step_row(step, limit) for step in reply.steps]
    if reply.query == "path":
        return _path_rows(reply, limit)
    write = _bare_line if reply.query == "isolated" else _node_line
    return [_Row(write(node, limit), "nodes", node) for node in reply.nodes]


def _path_rows(reply: GraphReply, limit: int) -> list[_Row]:
    ends = reply.nodes[:1] if reply.steps else reply.nodes
    rows = [_Row(_node_line(node, limit), "nodes", node) for node in ends]
    rows += [_step_row(step, limit, chained=True) for step in reply.steps]
    if reply.shorter:
        first = rows[0]
        rows.append(_Row(clip(f"or: {first.line}", limit), "shorter", first.item))
        rows += [_step_row(step, limit, chained=True, place="shorter") for step in reply.shorter]
    return rows


def _unlisted(reply: GraphReply) -> list[_Row]:
    """Tell how to list the other targets of dead links."""
    total = reply.counts["dead_targets"]
    if total <= len(reply.dead):
        return []
    return [_Row(f"missing: {total - len(reply.dead)} more: same call with depth={total}", "", None)]


def _names_row(label: str, names: Sequence[str], limit: int) -> _Row:
    """Return as many names as a line holds."""
    short = [_short(name) for name in names[:_MAX_LINE]]

    def line(count: int) -> str:
        more = f", and {len(names) - count} more in md_frontmatter" if count < len(names) else ""
        return f"{label}: {', '.join(short[:count])}{more}"

    shown = len(short)
    while shown > 1 and cost(line(shown)) > limit:
        shown -= 1
    return _Row(clip(line(shown), limit), label, short[:shown])


def _dead_row(link: DeadLink, limit: int, *, stats: bool = False) -> _Row:
    if not stats:
        return _Row(_ended(f"dead link: {link.target}", f" · L{link.line}", limit), "dead", link)
    source = clip(one_line(link.source), limit // 3)
    end = f" · {_count(link.links, 'link')}, first in {source} L{link.line}"
    return _Row(_ended(f"missing: {link.target}", end, limit), "dead", link)


def _step_row(
    step: GraphStep, limit: int, *, brief: bool = False, chained: bool = False, place: str = "links"
) -> _Row:
    """Return a note with the way to it; the note before is named unless the lines above tell it."""
    via = "" if chained or step.distance == 1 else f"{step.distance}: {clip(one_line(step.via), limit // 4)} "
    start = f"{via}{_MARKS[step.direction]} "
    links = f" · {step.links} links" if step.links > 1 else ""
    room = limit - cost(start) - cost(links)
    node = clip(one_line(step.node.id), room) if brief else _node_line(step.node, room)
    return _Row(f"{start}{node}{links}", place, step)


def _node_line(node: GraphNode, limit: int) -> str:
    """Return id, path, title if it says more, and degrees; the title goes first when it is too long."""
    dead = f", {node.dead} dead" if node.dead else ""
    return _line(node, f" · {node.links_in} in, {node.links_out} out{dead}", limit)


def _bare_line(node: GraphNode, limit: int) -> str:
    return _line(node, f" · {node.dead} dead" if node.dead else "", limit)


def _line(node: GraphNode, end: str, limit: int) -> str:
    name = f"{node.id} · {node.location}"
    whole = one_line(f"{name} · {node.title}{end}")
    if _is_telling(node) and cost(whole) <= limit:
        return whole
    return _ended(name, end, limit)


def _is_telling(node: GraphNode) -> bool:
    """Tell whether the title says more than the name of the file."""
    stem = node.location.rpartition("/")[2].rpartition(":")[2].rpartition(".")[0]
    return bool(node.title) and _letters(node.title) not in (_letters(stem), _letters(node.id))


def _letters(text: str) -> str:
    return "".join(character for character in text.casefold() if character.isalnum())


def _ended(text: str, end: str, limit: int) -> str:
    """Return a text with an end that is kept when the text is cut."""
    text = one_line(text)
    return text + end if cost(text + end) <= limit else clip(text, limit - cost(end)) + end


def _short(text: str) -> str:
    return clip(one_line(text), _MAX_LINE)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


# Facts and cursors


def _facts(reply: GraphReply, rows: Sequence[_Row]) -> Facts:
    facts: Facts = {"query": reply.query, "asked": reply.asked, "counts": reply.counts}
    if reply.query in ("node", "neighbors"):
        facts["node"] = _node_fact(reply.nodes[0])
    for row in rows:
        if row.place in reply.names:
            facts[row.place] = row.item
        elif row.place:
            facts.setdefault(row.place, []).append(_fact(row.item, brief=reply.query == "node"))
    return facts


def _fact(item: GraphNode | GraphStep | DeadLink | list[Any] | None, *, brief: bool) -> Any:
    if isinstance(item, GraphNode):
        return _node_fact(item)
    if isinstance(item, GraphStep):
        fact = {"id": item.node.id} if brief else {**_node_fact(item.node), "distance": item.distance}
        return fact | {"direction": item.direction, "via": item.via, "links": item.links}
    if isinstance(item, DeadLink):
        target = _short(item.target)
        return {"target": target, "source": item.source, "line": item.line, "links": item.links}
    return [_short(part) if isinstance(part, str) else part for part in item or ()]


def _node_fact(node: GraphNode) -> Facts:
    """Return what the line of a note tells, and its types; what says nothing is left out."""
    fact: Facts = {"id": node.id, "path": node.location}
    if _is_telling(node):
        fact["title"] = _short(node.title)
    if node.types:
        fact["types"] = [_short(name) for name in node.types[:_MAX_TYPES]]
    fact |= {"in": node.links_in, "out": node.links_out}
    return fact | {"dead": node.dead} if node.dead else fact


def _nearer(reply: GraphReply) -> str:
    """Offer the next smaller depth with what it would list."""
    if reply.query != "neighbors" or len(reply.counts) < 2:
        return ""
    *nearer, _ = reply.counts.values()
    return f", or depth={len(nearer)} ({sum(nearer)} notes)"


def _fingerprint(reply: GraphReply, total: int) -> str:
    text = json.dumps([reply.query, reply.asked, reply.counts, total])
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:6]


def _start(cursor: str, fingerprint: str) -> int:
    """Return how many rows lie before a page."""
    if not cursor:
        return 0
    start, _, given = cursor.partition("-")
    if not start.isascii() or not start.isdigit() or len(start) > 9 or given != fingerprint:
        raise QueryError(
            f"cursor {cursor[:40]!r} does not belong to this call, or the vault has changed; repeat the call "
            "that gave it with the same arguments, or leave cursor out to begin anew"
        )
    return int(start)
