"""Documents of a folder -> the reply of list_documents: as much detail as the budget holds."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from searchsvc.answering.lines import clip, one_line
from searchsvc.answering.outlines import make_tree
from searchsvc.items import Reply
from searchsvc.reading.note import stem
from searchsvc.reading.outline import Outline
from searchsvc.tokens import cost

_TOKENS_A_BYTE = 0.5
"""At most, in running text, code and tables of any script; only encoded data has more."""
_REST_TOKENS = 25
"""What a count of the rest and the call for it cost at most."""
_OMITTED_TOKENS = 30
"""What is said of details that are left out costs at most."""
_MORE_TOKENS = 12
_MAX_SUMMARY = 40
_MAX_PROBLEM = 60


@dataclass(slots=True)
class Entry:
    """A document as a list shows it."""

    id: str
    """Empty until ``name_entries`` gives one."""
    location: str
    path: str
    """Relative to its root."""
    tokens: int
    """Of the whole file: as indexed, or at most by its size; as read, once it is."""
    outline: Callable[[], Outline | None] = field(repr=False)
    """Parses the file; none when it cannot be read."""
    title: str = ""
    summary: str = ""
    approx_tokens: int | None = None
    """By the index file, whose number is shown as it is."""

    def __post_init__(self) -> None:
        if self.approx_tokens is not None:
            self.tokens = self.approx_tokens

    @property
    def cost(self) -> str:
        """Tokens as shown: a ``~`` marks what no index file gives."""
        return f"{self.tokens}" if self.approx_tokens is not None else f"~{self.tokens}"

    def read(self) -> Outline | None:
        """Parse the file, and know from then on what it costs."""
        outline = self.outline()
        if outline is not None and self.approx_tokens is None:
            self.tokens = outline.cost
        return outline


@dataclass(frozen=True, slots=True)
class _Detail:
    """How much a list says of each document."""

    depth: int
    """Of headings; 0 for none."""
    summaries: bool
    line_bounds: bool


def most_tokens(size: int) -> int:
    """Return the most tokens that a file of ``size`` bytes is likely to have."""
    return math.ceil(size * _TOKENS_A_BYTE)


def name_entries(entries: Sequence[Entry]) -> None:
    """Give ids to documents that have none: the name of the file, or its path where that is taken."""
    stems = Counter(stem(entry.path).casefold() for entry in entries)
    taken = {entry.id for entry in entries if entry.id}
    bare = Counter(_bare(entry.location).casefold() for entry in entries)
    for entry in entries:
        if entry.id:
            continue
        name, path = stem(entry.path), _bare(entry.location)
        if stems[name.casefold()] == 1 and name not in taken:
            entry.id = name
        else:
            entry.id = path if bare[path.casefold()] == 1 and path not in taken else entry.location


def render_listing(
    root: str, entries: Sequence[Entry], problems: Sequence[str], *, line_bounds: bool, depth: int,
    start: int, budget: int,
) -> Reply:  # fmt: skip
    """List documents from ``start`` on, at least one.

    Where it is tight sections are left out, the deepest first, then summaries; that is said.
    """
    told = _problem_lines(problems, budget // 4)
    room = budget - cost("\n".join([_head(root, entries, budget), *told])) - _REST_TOKENS
    room -= min(_OMITTED_TOKENS, budget // 8)
    depths = [level for level in (depth, 3, 2, 1) if level <= depth and level > 0]
    plans = [_Detail(level, True, line_bounds) for level in dict.fromkeys(depths)]
    plans += [_Detail(0, True, line_bounds), _Detail(0, False, line_bounds)]
    body, shown, plan = list[str](), 0, plans[-1]
    for plan in plans:
        body, shown = _fill(entries[start:], plan, room)
        if start + shown == len(entries):
            break
    else:
        folders = _folders(root, entries, room // 3) if not start else []
        body, shown = _fill(entries[start:], plan, room - sum(cost(line) + 1 for line in folders), least=1)
        body = [*folders, *body]
    left = len(entries) - start - shown
    rest = f'same call with cursor="{start + shown}"' if left > 0 else ""
    if rest:
        body.append(f"{left} documents more: {rest}, or a folder as root")
    lines = [_head(root, entries, budget), *told, *body]  # some costs are known only now
    lines += _omitted(plan, plans[0], budget - cost("\n".join(lines)) - 1)
    text = "\n".join(lines)
    facts = tuple(_facts(entry) for entry in entries[start : start + shown])
    return Reply((text,), cost(text), facts, tuple(problems), rest)


def _omitted(plan: _Detail, wanted: _Detail, room: int) -> list[str]:
    """Say which details a list leaves out, and how to get them if there is room for that, too."""
    sections = f"sections below depth {plan.depth}" if plan.depth else "sections"
    names = [sections] if plan.depth < wanted.depth else []
    names += [] if plan.summaries else ["summaries"]
    if not names:
        return []
    said = f"(left out: {', '.join(names)})"
    whole = f"{said[:-1]}; larger max_tokens, a folder as root, or md_tree(path) has them)"
    return [whole] if cost(whole) <= room else [clip(said, room)] if room > 0 else []


def _problem_lines(problems: Sequence[str], budget: int) -> list[str]:
    """Return the problems that fit, and always how many there are beyond."""
    lines: list[str] = []
    for number, problem in enumerate(problems):
        line = f"! {clip(one_line(problem), _MAX_PROBLEM)}"
        more = len(problems) - number - 1
        if cost("\n".join([*lines, line])) + (_MORE_TOKENS if more else 0) > budget:
            return [
                *lines,
                f"! {len(problems) - number} problems{' more' if number else ''}: larger max_tokens",
            ]
        lines.append(line)
    return lines


def _head(root: str, entries: Sequence[Entry], budget: int) -> str:
    total = sum(entry.tokens for entry in entries)
    name = clip(one_line(root), budget // 4)
    if not entries:
        return f"{name} · no documents"
    return f"{name} · {len(entries)} documents · ~{total} tok · id · path · tok · summary"


def _fill(entries: Sequence[Entry], plan: _Detail, room: int, *, least: int = 0) -> tuple[list[str], int]:
    """Return the lines of as many documents as fit, and how many they are; the ``least`` are cut to fit."""
    lines, spent = list[str](), 0
    for count, entry in enumerate(entries):
        part = _lines(entry, plan)
        price = sum(cost(line) + 1 for line in part)
        if spent + price > room:
            if count >= least:
                return lines, count
            part = [clip(part[0], max(room - 1, 5))]
            price = cost(part[0]) + 1
        spent += price
        lines += part
    return lines, len(entries)


def _lines(entry: Entry, plan: _Detail) -> list[str]:
    outline = entry.read() if plan.summaries or plan.depth or plan.line_bounds else None
    parts = [one_line(entry.id)]
    if entry.location != entry.id:
        parts.append(one_line(entry.location))
    parts.append(f"{entry.cost} tok")
    if plan.line_bounds and outline is not None:
        parts.append(f"L1-{outline.lines}")
    about = entry.summary or entry.title or (outline.summary if outline else "")
    if plan.summaries and about:
        parts.append(clip(one_line(about), _MAX_SUMMARY))
    lines = [f"- {' · '.join(parts)}"]
    if outline is None:
        return lines
    for row in make_tree(entry.location, outline).rows if plan.depth else ():
        if row.depth <= plan.depth:
            bounds = f" L{row.line_start}-{row.line_end}" if plan.line_bounds else ""
            lines.append(f"{'  ' * row.depth}{one_line(row.id)}{bounds} {row.cost}")
    return lines


def _folders(root: str, entries: Sequence[Entry], room: int) -> list[str]:
    """Return the folders right below, with what they hold, if there are several and they fit."""
    base = root.strip("/").rpartition(":")[2]
    prefix = "" if base in ("", ".") else f"{base}/"
    counts, tokens = Counter[str](), Counter[str]()
    for entry in entries:
        inside = entry.path.removeprefix(prefix)
        if "/" in inside:
            folder = prefix + inside.partition("/")[0]
            counts[folder] += 1
            tokens[folder] += entry.tokens
    lines = [f"{one_line(name)}/ · {counts[name]} documents · ~{tokens[name]} tok" for name in sorted(counts)]
    return lines if len(lines) > 1 and sum(cost(line) + 1 for line in lines) <= room else []


def _facts(entry: Entry) -> dict[str, object]:
    return {"id": entry.id, "path": entry.location, "tokens": entry.tokens, "title": entry.title}


def _bare(location: str) -> str:
    folder, slash, _ = location.rpartition("/")
    return f"{folder}{slash}{stem(location)}"
