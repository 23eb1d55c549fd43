"""Text of lines -> Markdown: lines joined to paragraphs, and what Markdown would take for a mark escaped."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

HYPHENS = ("-", "\u00ad")
"""Ends of lines that may part a word."""
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_LAST_PART = re.compile(r"([^\W\d_]+(?:-[^\W\d_]+)*)-$")
_FIRST_PART = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
WIDE = re.compile("[\u2e80-\u9fff\uf900-\ufaff\uff00-\uff60\U00020000-\U0003ffff]")
"""Scripts that put no spaces between words. Hangul is not among them: it does."""
_KNOWN_PART = 4

_BLOCK = re.compile(r"(?:#{1,6}(?=\s|$)|[-+*](?=\s|$)|>|~~~|\[[^\]]+\]:|={3,}\s*$|(?:[-_*]\s*){3,}$)")
_NUMBER = re.compile(r"(\d{1,9})([.)])(?=\s|$)")
_BACKSLASH = re.compile(r"\\(?=[!-/:-@\[-`{-~])")
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_ENTITY = re.compile(r"&(?=#?\w{1,31};)")
_LINK = re.compile(r"\[(?=\[|[^\]\[]*\]\()")
_STARS = re.compile(r"\*(?!\s|$)|(?<=\S)\*")
_UNDERSCORES = re.compile(r"(?<![^\W_])_(?!\s|$)|(?<=[^\s_])_(?!\w)")


class Joiner:
    """Joins lines to one text, knowing the words of the whole document.

    A hyphen at the end of a line stays when the rest begins with a capital or a digit; when the document has
    the word with its hyphen elsewhere and not without; and when both parts, of four letters or more, are
    words of the document by themselves, and the whole is none. Else it parted a word, and goes. A soft
    hyphen always goes.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        self._known: Counter[str] = Counter()
        for line in lines:
            words = _WORD.findall(line.casefold())
            # The parts of a word that a line end parts are no words that the document knows.
            if line.endswith(HYPHENS) and words:
                words.pop()
            self._known.update(words)

    def join(self, lines: Sequence[str]) -> str:
        """Return lines as one text."""
        text = ""
        for line in lines:
            text = self._joined(text, line) if text else line
        return text.replace("\u00ad", "")

    def _joined(self, text: str, line: str) -> str:
        if not line:
            return text
        if text.endswith("\u00ad"):
            return text[:-1] + line
        last, first = _LAST_PART.search(text), _FIRST_PART.match(line)
        if last and line[0].isdigit():
            return text + line
        if last and first:
            return (text if self._keeps(last[1], first[0]) else text[:-1]) + line
        if WIDE.match(text[-1]) and WIDE.match(line[0]):
            return text + line
        return f"{text} {line}"

    def _keeps(self, left: str, right: str) -> bool:
        if right[0].isupper():
            return True
        left, right = left.casefold(), right.casefold()
        whole, parted = self._known[left + right], self._known[f"{left}-{right}"]
        if whole or parted:
            return parted > whole
        return min(len(left), len(right)) >= _KNOWN_PART and bool(self._known[left] and self._known[right])


def escape_text(text: str) -> str:
    """Return text of one line such that Markdown shows it as it is, with no more escapes than that takes."""
    return escape_start(escape_inline(text))


def escape_start(text: str) -> str:
    """Escape what would make a block of a line of text that is escaped within."""
    text = text.lstrip()
    if _BLOCK.match(text):
        return f"\\{text}"
    if text.startswith("```"):
        return f"\\{text}"
    return _NUMBER.sub(r"\1\\\2", text, count=1) if _NUMBER.match(text) else text


def escape_inline(text: str) -> str:
    """Escape what means something anywhere in a line."""
    text = _BACKSLASH.sub(r"\\\\", text)
    if "<" in text:
        text = _TAG.sub(r"\\<", text)
    if "&" in text:
        text = _ENTITY.sub(r"\\&", text)
    if "[" in text:
        text = _LINK.sub(r"\\[", text)
    # One mark alone emphasises nothing.
    if text.count("*") > 1:
        text = _STARS.sub(r"\\*", text)
    if text.count("_") > 1:
        text = _UNDERSCORES.sub(r"\\_", text)
    if text.count("`") > 1:
        text = text.replace("`", "\\`")
    return text.replace("~~", "\\~~") if "~~" in text else text


def heading(text: str, level: int) -> str:
    """Return a heading line; a closing ``#`` of the text is kept as text."""
    text = re.sub(r"(?<=\s)(#+)$", r"\\\1", escape_inline(text.strip()))
    return f"{'#' * level} {text}"


def table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as a Markdown table whose first row is its head."""
    written = [
        "| " + " | ".join(escape_inline(cell).replace("|", "\\|") for cell in row) + " |" for row in rows
    ]
    written.insert(1, "|" + " --- |" * len(rows[0]))
    return "\n".join(written)


def code(lines: Sequence[str]) -> str:
    """Return lines in a fence that is longer than any in them."""
    longest = max((len(mark) for line in lines for mark in re.findall("`{3,}", line)), default=2)
    fence = "`" * (longest + 1)
    return "\n".join([fence, *lines, fence])


def image(caption: str, name: str) -> str:
    """Return an image with its caption."""
    caption = re.sub(r"([\[\]])", r"\\\1", escape_inline(caption).replace("\\[", "["))
    return f"![{caption}](assets/{name})"
