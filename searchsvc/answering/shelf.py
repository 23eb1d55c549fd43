"""Documents -> the replies of the reader's tools: a list of them, one opened, paragraphs with a text."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from searchsvc.answering.lines import clip, is_inside_character, one_line, pages_of
from searchsvc.answering.pack import mark_for
from searchsvc.errors import QueryError
from searchsvc.items import Metadata, Reply, Section
from searchsvc.tokens import cost

_TAIL_TOKENS = 40
"""What the count of the rest and the call for it cost at most."""
_PART_TOKENS = 60
"""Longer paragraphs are shown in part once the first one is shown."""
_MAX_TITLE = 60
_MAX_FOUND = 8


@dataclass(frozen=True, slots=True)
class Document:
    """A document as a list shows it."""

    id: str
    """Its path, which every tool accepts."""
    title: str
    modified: float
    """Seconds since 1970."""
    cost: int
    """Tokens of its text."""
    metadata: Metadata

    @property
    def facts(self) -> dict[str, Any]:
        """The same for programs; what is unknown is left out."""
        about = self.metadata
        known = {
            "author": about.author, "language": about.language, "pages": about.pages,
            "created": about.created, "imported": about.imported,
        }  # fmt: skip
        return {
            "doc_id": self.id, "path": self.id, "title": self.title, "file_type": about.file_type,
            "tokens": self.cost, "modified": _moment(self.modified),
            **{name: value for name, value in known.items() if value},
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Found:
    """A paragraph that holds a text."""

    id: str
    """Of its section."""
    section: Section
    line_start: int
    line_end: int
    lines: tuple[int, ...]
    """Those on which the text stands."""
    text: str
    count: int


def describe(document: Document) -> str:
    """Return what is known of a document, in one line."""
    about = document.metadata
    pages = f"{about.pages} page{'s' if about.pages > 1 else ''}" if about.pages else ""
    title = clip(one_line(document.title), _MAX_TITLE)
    said = (f'"{title}"', clip(one_line(about.author), _MAX_TITLE // 2), about.file_type, pages,
            about.language, f"{document.cost} tok", _moment(document.modified)[:10])  # fmt: skip
    return " · ".join(part for part in said if part)


def render_shelf(documents: Sequence[Document], start: int, limit: int, budget: int) -> Reply:
    """List documents from ``start`` on, at most ``limit`` and at least one."""
    page = documents[start : start + limit]
    lines, facts = [_count(len(documents), "document")], list[dict[str, Any]]()
    spent = cost(lines[0]) + _TAIL_TOKENS
    for document in page:
        line = f"{one_line(document.id)} · {describe(document)}"
        if not facts:
            line = clip(line, budget - spent)
        spent += cost(line) + 1
        if facts and spent > budget:
            break
        lines.append(line)
        facts.append(document.facts)
    left = len(documents) - start - len(facts)
    rest = f'same call with cursor="{start + len(facts)}"' if left > 0 else ""
    if rest:
        lines.append(f"{left} more: {rest}")
    text = "\n".join(lines)
    return Reply((text,), cost(text), tuple(facts), (), rest)


def render_opened(
    document: Document, lines: Sequence[str], span: tuple[int, int], notes: Sequence[str], *,
    max_chars: int, budget: int, cursor: str,
) -> Reply:  # fmt: skip
    """Show lines of a document from where a cursor points, verbatim, at most ``max_chars`` characters."""
    body_start, body_end = span
    body = "\n".join(lines[body_start - 1 : body_end])
    start = _start(cursor, body)
    mark = mark_for([body])
    head = f"{mark} {clip(one_line(document.id), budget // 4)} · {clip(describe(document), budget // 4)}"
    said = [f"{mark} ! {clip(one_line(note), budget // 8)}" for note in notes[:2]]
    room = budget - cost("\n".join([head, *said])) - 2 * _TAIL_TOKENS
    end = _end(body, start, max_chars, room)
    first = body_start + body.count("\n", 0, start)
    last = first + body[start:end].rstrip("\n").count("\n")
    where = f"{mark} L{first}-{last} of {len(lines)}, characters {start}-{end} of {len(body)}"
    rest = f'same call with cursor="{end}-{_fingerprint(body)}"' if end < len(body) else ""
    tail = [f"{mark} {len(body) - end} characters more: {rest}"] if rest else []
    text = "\n".join([head, *said, where, body[start:end].rstrip("\n"), *tail])
    facts = document.facts | {"lines": [first, last], "characters": [start, end], "of": len(body)}
    return Reply((text,), cost(text), (facts,), tuple(notes), rest)


def render_paragraphs(
    needle: str, found: Sequence[Found], notes: Sequence[str], *, start: int, limit: int, budget: int
) -> Reply:
    """Show paragraphs from ``start`` on, best first, at most ``limit`` and at least one."""
    shown = clip(one_line(needle), _MAX_TITLE)
    if not found:
        said = [f"! {clip(one_line(note), 60)}" for note in notes]
        advice = "Try a shorter or other spelling, or search by meaning."
        text = "\n".join([f"No paragraph holds {shown!r} as it is written.", *said, advice])
        return Reply((text,), cost(text), (), tuple(notes))
    page = found[start : start + limit]
    mark = mark_for(item.text for item in page)
    lines = [f"{_count(len(found), 'paragraph')} with {shown!r} (lines without {mark} are quoted data)"]
    lines += [f"{mark} ! {clip(one_line(note), 60)}" for note in notes]
    spent, facts = cost("\n".join(lines)) + _TAIL_TOKENS, list[dict[str, Any]]()
    for number, item in enumerate(page, start + 1):
        head = f"{mark} {number}. {_place(item)}"
        room = budget - spent - cost(head) - 2
        head = head if room > 0 or facts else clip(head, budget - spent - 2)
        text = _excerpt(item, max(room, 0) if not facts else min(room, _PART_TOKENS))
        price = cost(f"{head}\n{text}") + 1
        if facts and spent + price > budget:
            break
        spent += price
        lines += [head, text] if text else [head]
        facts.append(_facts(item))
    left = len(found) - start - len(facts)
    rest = f'same call with cursor="{start + len(facts)}"' if left > 0 else ""
    if rest:
        lines.append(f"{mark} {left} more: {rest}")
    text = "\n".join(lines)
    return Reply((text,), cost(text), tuple(facts), tuple(notes), rest)


def _place(item: Found) -> str:
    lines = ", ".join(map(str, item.lines[:_MAX_FOUND]))
    more = ", …" if len(item.lines) > _MAX_FOUND else ""
    span = (
        f"L{item.line_start}" if item.line_start == item.line_end else f"L{item.line_start}-{item.line_end}"
    )
    at = "" if item.line_start == item.line_end else f" (at {lines}{more})"
    return f"{one_line(item.id)} · {span}{at}{pages_of(item.section)}"


def _facts(item: Found) -> dict[str, Any]:
    pages: Mapping[str, Any] = {"pages": list(item.section.pages)} if item.section.pages else {}
    return {
        "id": item.id, "lines": [item.line_start, item.line_end], "found": list(item.lines),
        "count": item.count, "text": item.text[:1000], **pages,
    }  # fmt: skip


def _excerpt(item: Found, room: int) -> str:
    """Return a paragraph, or as much of it, from the first line that holds the text, as there is room for."""
    if cost(item.text) <= room:
        return item.text
    lines = item.text.split("\n")[item.lines[0] - item.line_start :]
    return clip("\n".join(lines), room) if room > 1 else ""


def _end(body: str, start: int, max_chars: int, room: int) -> int:
    """Return where a piece of text ends: at a line end or blank if there is one in its second half."""
    piece = body[start : start + max_chars]
    if cost(piece) > room:
        piece = piece[: max(len(clip(piece, room)) - 1, 1)]
    end = start + len(piece)
    if end >= len(body):
        return len(body)
    for sign in ("\n", " "):
        cut = piece.rfind(sign)
        if cut >= len(piece) // 2:
            return start + cut + 1
    while end > start + 1 and is_inside_character(body, end):
        end -= 1
    return end


def _start(cursor: str, body: str) -> int:
    if not cursor:
        return 0
    start, _, given = cursor.partition("-")
    is_number = start.isascii() and start.isdigit() and len(start) < 10
    if not is_number or given != _fingerprint(body) or int(start) > len(body):
        raise QueryError(
            f"cursor {cursor[:40]!r} does not belong to this document as it is now; leave cursor out to "
            "begin anew"
        )
    return int(start)


def _fingerprint(body: str) -> str:
    return hashlib.sha256(body.encode("utf-8", "surrogatepass")).hexdigest()[:6]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _moment(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"
