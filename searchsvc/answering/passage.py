"""Lines of a document -> blocks of text and pictures, verbatim but for placeholders and repaired fences."""

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Literal

from searchsvc.answering.lines import clip, one_line
from searchsvc.answering.window import closing_fence
from searchsvc.errors import SearchError
from searchsvc.items import CodeBlock, Image, Picture
from searchsvc.reading.outline import Outline
from searchsvc.reading.pictures import picture_cost
from searchsvc.tokens import cost

Images = Literal["keep", "omit", "send"]
"""Image references stay as written, give way to a placeholder, or to the picture itself."""

_MAX_CAPTION = 40
"""Tokens of an image's caption or address in a placeholder."""
_SHRINK = 0.85
_LONGEST_LINE = 6_000
"""Tokens of a line that the budget by default can return whole."""
_BETWEEN = r"\n[ \t>]*"


@dataclass(frozen=True, slots=True)
class Source:
    """A document as it is now."""

    location: str
    """How replies name it."""
    outline: Outline
    lines: tuple[str, ...] = field(repr=False)
    show: Callable[[Image], Picture]
    """Returns the picture that an image reference means; raises ``SearchError`` when it cannot be sent."""
    caption: Callable[[Image], str]
    """Returns what is known of an image besides its address."""


@dataclass(frozen=True, slots=True)
class Manner:
    """How a passage is shown."""

    images: Images = "keep"
    with_code: bool = True


@dataclass(slots=True)
class Gallery:
    """What of pictures one reply may still hold, and what it holds of the document at hand."""

    left: int = 0
    """How many more pictures may be sent."""
    sent: dict[bytes, int] = field(default_factory=dict)
    """Line at which each picture of the document was sent, by its bytes: names of one file may differ."""
    reasons: dict[str, str] = field(default_factory=dict)
    """Why pictures were not sent or a line was cut, once for each of them."""
    held: list[int] = field(default_factory=list)
    """Lines of the pictures that did not fit."""

    @property
    def notes(self) -> list[str]:
        """The reasons, in the order in which they came up."""
        return list(self.reasons.values())


@dataclass(frozen=True, slots=True)
class Shown:
    """A passage as it stands in a reply."""

    blocks: tuple[str | Picture, ...]
    cost: int
    """Tokens, pictures included."""
    line_end: int
    """Last line shown; before the first one when nothing fits."""


def show_lines(source: Source, first: int, last: int, manner: Manner, gallery: Gallery, budget: int) -> Shown:
    """Show the lines from ``first`` to ``last``, or as many of them as ``budget`` tokens hold.

    The lines end before a picture that fits another reply better. The first line is cut when even that one
    is too long; one that no reply can hold counts as shown, with a note, so that the rest can be reached.
    """
    end = _fitting_line(source.lines, first, last, budget, manner, source.outline.code)
    while end >= first:
        if not manner.with_code:
            end = _past_code(source.outline.code, end, last)
        elif first < end < last and any(
            block.line_start == end for block in source.outline.code if block.fence
        ):
            end -= 1  # A fence without its code says nothing.
        trial = Gallery(gallery.left, dict(gallery.sent), dict(gallery.reasons))
        blocks = _blocks(source, first, end, manner, trial, budget)
        spent = blocks_cost(blocks)
        held = min((line for line in trial.held if line > first), default=0)
        if spent <= budget and not held:
            gallery.left, gallery.sent, gallery.reasons = trial.left, trial.sent, trial.reasons
            return Shown(blocks, spent, end)
        smaller = first + int((end - first) * _SHRINK) if end > first else first - 1
        end = held - 1 if spent <= budget else smaller
        if not manner.with_code and spent > budget:
            end = _before_code(source.outline.code, end)
    line = source.lines[first - 1]
    text, whole = clip(line, budget), cost(line)
    if whole > _LONGEST_LINE:
        gallery.reasons[f"L{first}"] = f"L{first} is cut: {whole} tok; look into it with grep or another tool"
    return Shown((text,) if len(text) > 1 else (), cost(text), first if whole > _LONGEST_LINE else first - 1)


def blocks_cost(blocks: Sequence[str | Picture]) -> int:
    """Return the tokens of text and pictures."""
    return sum(cost(block) if isinstance(block, str) else picture_cost(block) for block in blocks)


def lines_cost(source: Source, first: int, last: int) -> int:
    """Return the tokens of lines as they are."""
    return cost("\n".join(source.lines[first - 1 : last]))


def _fitting_line(
    lines: Sequence[str], first: int, last: int, budget: int, manner: Manner, code: Sequence[CodeBlock]
) -> int:
    """Return the last line up to which a passage may fit, by the costs of its lines."""
    left_out = set[int]()
    if not manner.with_code:
        for block in code:
            left_out.update(range(block.line_start, block.line_end + 1))
    costs = (0 if n in left_out else cost(lines[n - 1]) for n in range(first, last + 1))
    # A line alone is rounded up, so that the sum of many is too high by half a token each.
    spent = list(accumulate(max(0.0, price - 0.5) for price in costs))
    return first + bisect_right(spent, budget) - 1


def _past_code(code: Sequence[CodeBlock], end: int, last: int) -> int:
    """Return the end of a block that is left out and would be cut: its placeholder costs the same."""
    whole = (block.line_end for block in code if block.line_start <= end < block.line_end <= last)
    return next(whole, end)


def _before_code(code: Sequence[CodeBlock], end: int) -> int:
    """Return the last line before a block that is left out and would be cut."""
    return next((block.line_start - 1 for block in code if block.line_start <= end < block.line_end), end)


def _blocks(
    source: Source, first: int, last: int, manner: Manner, gallery: Gallery, budget: int
) -> tuple[str | Picture, ...]:
    code = [block for block in source.outline.code if block.line_start <= last and block.line_end >= first]
    lines = {number: source.lines[number - 1] for number in range(first, last + 1)}
    if not manner.with_code:
        for block in code:
            for number in range(max(first, block.line_start), min(last, block.line_end) + 1):
                del lines[number]
            lines[max(first, block.line_start)] = _omitted(block)
    images = [image for image in source.outline.images if image.line in lines]
    numbers = sorted(lines)
    text = "\n".join(lines[number] for number in numbers)
    starts = dict(zip(numbers, accumulate((len(lines[n]) + 1 for n in numbers), initial=0), strict=False))
    pieces: list[str | Picture] = (
        [text]
        if manner.images == "keep"
        else _with_images(text, starts, images, source, manner, gallery, budget)
    )
    if manner.with_code and pieces:
        _repair(pieces, source.lines, code, first, last)
    return tuple(piece for piece in pieces if not isinstance(piece, str) or piece.strip("\n"))


def _omitted(block: CodeBlock) -> str:
    count = block.line_end - block.line_start + 1
    inside = max(count - 2, 0) if block.fence else count
    what = (
        f"code block omitted: {one_line(block.language)[:40]}, " if block.language else "code block omitted: "
    )
    plural = "" if inside == 1 else "s"
    return f"[{what}{inside} line{plural}, L{block.line_start}–{block.line_end}]"


def _repair(
    pieces: list[str | Picture], lines: Sequence[str], code: Sequence[CodeBlock], first: int, last: int
) -> None:
    """Open a code block at the top and close one at the bottom that the range cuts."""
    for block in code:
        if not block.fence:
            continue
        opening = lines[block.line_start - 1]
        if block.line_start < first:
            head = pieces[0]
            pieces[0:1] = [f"{opening}\n{head}"] if isinstance(head, str) else [opening, head]
        if block.line_end > last:
            tail, closing = pieces[-1], closing_fence(opening)
            pieces[-1:] = [f"{tail}\n{closing}"] if isinstance(tail, str) else [tail, closing]


def _with_images(
    text: str, starts: dict[int, int], images: Sequence[Image], source: Source, manner: Manner,
    gallery: Gallery, budget: int,
) -> list[str | Picture]:  # fmt: skip
    """Put placeholders or pictures in the place of image references."""
    pieces: list[str | Picture] = [""]
    done = 0
    for image in images:
        written = _written(image).search(text, max(done, starts[image.line])) if image.raw else None
        if written is None:
            continue
        stand_in, picture = _stand_in(image, source, manner, gallery, budget - blocks_cost(pieces))
        if not stand_in:
            continue
        pieces[-1] = f"{pieces[-1]}{text[done : written.start()]}{stand_in}"
        if picture is not None:
            pieces += [picture, ""]
        done = written.end()
    pieces[-1] = f"{pieces[-1]}{text[done:]}"
    return pieces


def _written(image: Image) -> re.Pattern[str]:
    """Return what finds a reference in the lines of the file, marks of quotes and lists between them."""
    return re.compile(_BETWEEN.join(re.escape(part.lstrip(" \t")) for part in image.raw.split("\n")))


def _stand_in(
    image: Image, source: Source, manner: Manner, gallery: Gallery, budget: int
) -> tuple[str, Picture | None]:
    """Return the text that takes the place of a reference, and the picture; none to leave it as written."""
    name = address_of(image)
    if manner.images == "omit":
        about = source.caption(image)
        return f"[image omitted: {name} — {about}]" if about else f"[image omitted: {name}]", None
    if gallery.left <= 0 and not gallery.sent:  # nothing to load for
        return _unsent(gallery, image, name, "the limit of images is reached")
    try:
        picture = source.show(image)
    except SearchError as error:
        reason = one_line(str(error))
        return _unsent(gallery, image, "image" if reason.startswith(image.source[:20]) else name, reason)
    if picture.data in gallery.sent:
        return f"[image: {name}, shown above at L{gallery.sent[picture.data]}]", None
    if gallery.left <= 0:
        return _unsent(gallery, image, name, "the limit of images is reached")
    price = picture_cost(picture)
    if price > budget:
        gallery.held.append(image.line)
        return _unsent(
            gallery, image, name, f"it costs {price} tok; ask for L{image.line} with more max_tokens"
        )
    gallery.left -= 1
    gallery.sent[picture.data] = image.line
    about = source.caption(image)
    return f"[image: {name} — {about}]" if about else f"[image: {name}]", picture


def _unsent(gallery: Gallery, image: Image, name: str, reason: str) -> tuple[str, None]:
    """Leave a reference as written, and say why, once for each image."""
    gallery.reasons.setdefault(image.raw, f"L{image.line}: {name} is not sent: {reason}")
    return "", None


def address_of(image: Image) -> str:
    """Return the address of an image for a line of ours: short, and on one line."""
    if image.source[:5].lower() == "data:":
        return f"{image.source[:5]}{image.source[5:40].partition(',')[0].partition(';')[0]}"
    return clip(one_line(image.source), _MAX_CAPTION)


def short_caption(text: str) -> str:
    """Return a caption for a line of ours."""
    return clip(one_line(text), _MAX_CAPTION)


def as_call(tool: str, **arguments: object) -> str:
    """Return a call of a tool as an agent may repeat it."""
    shown = ", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in arguments.items())
    return f"{tool}({shown})"
