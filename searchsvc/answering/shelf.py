"""Documents -> the replies of the reader's tools: a list of them, one opened, paragraphs with a text."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from searchsvc.answering.lines import ELLIPSIS, clip, is_inside_character, notice_lines, one_line, pages_of
from searchsvc.answering.pack import mark_for
from searchsvc.errors import QueryError
from searchsvc.items import Metadata, Reply, Section
from searchsvc.tokens import cost

_SLACK = 4
"""Line ends and rounding of a few parts whose costs are added."""
_TAIL_TOKENS = 40
"""What the count of the rest and the call for it cost at most."""
_PART_TOKENS = 60
"""Longer paragraphs are shown in part once the first one is shown."""
_FIRST_TOKENS = 240
"""The first one is always shown up to this length."""
_MAX_TITLE = 60
_MAX_NAME = 300
"""Characters of a title for programs: a heading may be as long as a note."""
_MAX_FOUND = 8
_MOST_LINES = 50
"""Lines with the text that programs are told of one paragraph."""
_MAX_NOTE = 60
_CHARS_A_TOKEN = 5
"""No text has more, so that of a long one only the beginning needs to be measured."""


@dataclass(frozen=True, slots=True)
class Document:
    """A document as a list shows it."""

    id: str
    """Its path, which every tool accepts."""
    title: str
    modified: float
    """Seconds since 1970."""
    cost: int
    """Tokens of its file."""
    metadata: Metadata

    @property
    def facts(self) -> dict[str, Any]:
        """The same for programs; what is unknown is left out."""
        about = self.metadata
        known = {
            "author": about.author, "language": about.language, "pages": about.pages,
            "created": about.created, "imported": about.imported, "modified": _moment(self.modified),
        }  # fmt: skip
        return {
            "doc_id": self.id, "path": self.id, "title": self.title[:_MAX_NAME],
            "file_type": about.file_type, "tokens": self.cost,
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
    column: int = 0
    """Characters before the text on the first of its lines, nearly."""


def describe(document: Document) -> str:
    """Return what is known of a document, in one line."""
    about = document.metadata
    pages = f"{about.pages} page{'s' if about.pages > 1 else ''}" if about.pages else ""
    title = clip(one_line(document.title[:_MAX_NAME]), _MAX_TITLE)
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
    start, mark = _start(cursor, body), mark_for([])
    while True:
        digest = _fingerprint(body)
        frame = [_where(mark, len(lines), len(lines), len(lines), len(body), len(body), len(body)),
                 _more(mark, len(body), f"{len(body)}-{digest}")]  # fmt: skip
        spare = budget - cost("\n".join(frame)) - _SLACK
        said = _said(mark, document, notes, spare // 2)
        end = _end(body, start, max_chars, spare - cost("\n".join(said)))
        needed = mark_for([body[start:end]])
        if len(needed) <= len(mark):
            break
        mark = needed
    first = body_start + body.count("\n", 0, start)
    last = first + body[start:end].rstrip("\n").count("\n")
    where = _where(mark, first, last, len(lines), start, end, len(body))
    rest = f"{end}-{digest}" if end < len(body) else ""
    tail = [_more(mark, len(body) - end, rest)] if rest else []
    text = "\n".join([*said, where, body[start:end].rstrip("\n"), *tail])
    facts = document.facts | {"lines": [first, last], "characters": [start, end], "of": len(body)}
    return Reply(
        (text,), cost(text), (facts,), tuple(notes), f'same call with cursor="{rest}"' if rest else ""
    )


def render_paragraphs(
    needle: str, page: Sequence[Found], notes: Sequence[str], *, total: int, start: int, budget: int
) -> Reply:
    """Show a page of ``total`` paragraphs, that after the first ``start``; at least one of it."""
    shown = clip(repr(one_line(needle[:_MAX_NAME])), min(_MAX_TITLE, budget // 5))
    if not total:
        text = f"No paragraph holds {shown} as it is written."
        advice = "Try a shorter or other spelling, or search by meaning."
        said = notice_lines(notes, budget - cost(text) - cost(advice) - _SLACK)
        text = "\n".join([text, *said, advice])
        return Reply((text,), cost(text), (), tuple(notes))
    mark = mark_for([])
    while True:
        first = f"{_count(total, 'paragraph')} with {shown} (lines without {mark} are quoted data)"
        room = min(budget - cost(first) - _TAIL_TOKENS, budget // 4, 2 * _MAX_NOTE)
        lines = [first, *(f"{mark} {line}" for line in notice_lines(notes, room))]
        blocks = _blocks(page, mark, start, budget - cost("\n".join(lines)) - _TAIL_TOKENS - len(mark))
        needed = mark_for(text for _, text in blocks)
        if len(needed) <= len(mark):
            break
        mark = needed
    lines += [line for block in blocks for line in block if line]
    facts = [_facts(item, text) for item, (_, text) in zip(page, blocks, strict=False)]
    left = total - start - len(facts)
    rest = f'same call with cursor="{start + len(facts)}"' if left > 0 and facts else ""
    if rest:
        lines.append(f"{mark} {left} more: {rest}")
    text = "\n".join(lines)
    return Reply((text,), cost(text), tuple(facts), tuple(notes), rest)


def _blocks(page: Sequence[Found], mark: str, start: int, budget: int) -> list[tuple[str, str]]:
    """Return our line and the text of as many paragraphs as fit.

    Of the first one as much as fits is shown, but of a long one no more than its share of the page.
    """
    blocks: list[tuple[str, str]] = []
    spent, share = 0, budget if len(page) == 1 else max(_FIRST_TOKENS, budget // len(page))
    for number, item in enumerate(page, start + 1):
        head = f"{mark} {number}. {_place(item)}"
        if not blocks:
            head = clip(head, budget - 2)
        room = budget - spent - cost(head) - 2
        text = _excerpt(item, min(room, _PART_TOKENS if blocks else share))
        price = cost(f"{head}\n{text}") + 1
        if blocks and spent + price > budget:
            break
        spent += price
        blocks.append((head, text))
    return blocks


def _place(item: Found) -> str:
    lines = ", ".join(map(str, item.lines[:_MAX_FOUND]))
    more = ", …" if len(item.lines) > _MAX_FOUND else ""
    span = (
        f"L{item.line_start}" if item.line_start == item.line_end else f"L{item.line_start}-{item.line_end}"
    )
    at = "" if item.line_start == item.line_end else f" (at {lines}{more})"
    return f"{one_line(item.id)} · {span}{at}{pages_of(item.section)}"


def _facts(item: Found, text: str) -> dict[str, Any]:
    pages: Mapping[str, Any] = {"pages": list(item.section.pages)} if item.section.pages else {}
    return {
        "id": item.id, "lines": [item.line_start, item.line_end], "found": list(item.lines[:_MOST_LINES]),
        "count": item.count, "text": text, **pages,
    }  # fmt: skip


def _excerpt(item: Found, room: int) -> str:
    """Return a paragraph, or as much as there is room for, from the first line that holds the text.

    Of a long line, from shortly before the text.
    """
    if len(item.text) <= _CHARS_A_TOKEN * room and cost(item.text) <= room:
        return item.text
    lines = item.text.split("\n")[item.lines[0] - item.line_start :]
    text, begin = "\n".join(lines), item.column - room // 3
    if cost(text[: item.column][: _CHARS_A_TOKEN * max(room, 0)]) > room // 2 and begin > 0:
        while begin > 0 and is_inside_character(text, begin):
            begin -= 1
        text = ELLIPSIS + text[begin:]
    return _beginning(text, room) if room > 1 else ""


def _beginning(text: str, room: int) -> str:
    """Return what ``clip`` does, in no more time than that takes."""
    return clip(text[: _CHARS_A_TOKEN * max(room, 0) + 10], room)


def _said(mark: str, document: Document, notes: Sequence[str], room: int) -> list[str]:
    """Return what is said of a document before its text."""
    name, about = one_line(document.id), describe(document)
    head = f"{mark} {clip(name, room // 2)} · "
    head = clip(head + about, room * 2 // 3 if notes else room)
    return [head, *(f"{mark} {line}" for line in notice_lines(notes, room - cost(head) - len(mark)))]


def _where(mark: str, first: int, last: int, lines: int, start: int, end: int, characters: int) -> str:
    return f"{mark} L{first}-{last} of {lines}, characters {start}-{end} of {characters}"


def _more(mark: str, left: int, cursor: str) -> str:
    return f'{mark} {left} characters more: same call with cursor="{cursor}"'


def _end(body: str, start: int, max_chars: int, room: int) -> int:
    """Return where a piece of text ends: at a line end or blank if there is one in its second half."""
    piece = body[start : start + max_chars]
    if len(piece) > _CHARS_A_TOKEN * room or cost(piece) > room:
        piece = piece[: max(len(_beginning(piece, room)) - 1, 1)]
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
    """Return a time as ISO 8601; empty for one that no calendar has, as a file may say."""
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"
    except (OverflowError, OSError, ValueError):
        return ""
