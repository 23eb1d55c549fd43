"""Bytes of a file -> its lines, whatever the encoding and line ends."""

import codecs
import re
from dataclasses import dataclass

from searchsvc.errors import ReadingError

_LINE_END = re.compile(r"\r\n|\r|\n")
_CONTROL = bytes([*range(0x09), *range(0x0E, 0x1B), *range(0x1C, 0x20)])
_BINARY_SHARE = 0.1
_SNIFFED_BYTES = 8192
_MIN_WIDE = 8
_WIDE_SHARE = 0.5
"""Of the characters of a text in UTF-16 without a mark so many are Latin; their other byte is zero."""
_BOMS_32 = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
_BOMS = (*_BOMS_32, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@dataclass(frozen=True, slots=True)
class Text:
    """Decoded text with what had to be done to it."""

    lines: tuple[str, ...]
    """Split at LF, CRLF and CR only, as CommonMark and grep do."""
    problem: str = ""
    """What was wrong with the encoding; empty when nothing was."""


def decode(data: bytes) -> Text:
    """Return the lines of a text file.

    UTF-8, UTF-16, and UTF-32 with a byte order mark, are understood. Other bytes are read as UTF-8 with
    replacement characters when most of the file is UTF-8, else as Windows-1252, and that is said.
    Raises ``ReadingError`` for binary data.
    """
    text, problem = _characters(data)
    if "\x00" in text:
        text = text.replace("\x00", "\ufffd")
        problem = problem or "holds zero bytes, read as U+FFFD"
    return Text(lines=split_lines(text), problem=problem)


def split_lines(text: str) -> tuple[str, ...]:
    """Split at LF, CRLF and CR; a line end at the very end opens no further line."""
    lines = _LINE_END.split(text) if "\r" in text else text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return tuple(lines)


def _characters(data: bytes) -> tuple[str, str]:
    start = 0
    while data.startswith(codecs.BOM_UTF8, start):  # several, where programs have each put one there
        start += len(codecs.BOM_UTF8)
    data = data[start:]
    wide = _wide_encoding(data)
    if wide:
        return data.decode(wide, errors="replace"), f"is {wide}; saving it as UTF-8 is advised"
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return _repair(data)
    _refuse_binary(data)
    return text, ""


def _wide_encoding(data: bytes) -> str:
    """Return the encoding of text in units of two or four bytes, told by its mark or its zero bytes."""
    if data.startswith(_BOMS):
        return "UTF-32" if data.startswith(_BOMS_32) else "UTF-16"
    head = data[: _SNIFFED_BYTES & ~1]
    zeros = head[::2].count(0), head[1::2].count(0)
    if len(head) < _MIN_WIDE or min(zeros) or max(zeros) < _WIDE_SHARE * len(head) / 2:
        return ""
    if _is_binary(head[1::2] if zeros[0] else head[::2]):
        return ""
    return "UTF-16-BE" if zeros[0] else "UTF-16-LE"


def _repair(data: bytes) -> tuple[str, str]:
    _refuse_binary(data)
    text = data.decode("utf-8", errors="replace")
    broken = text.count("\ufffd")
    sound = sum(1 for character in text if character > "\x7f") - broken
    if sound >= broken:
        return text, f"has {broken} places that are not UTF-8, shown as U+FFFD"
    return data.decode("cp1252", errors="replace"), "is not UTF-8, read as Windows-1252"


def _refuse_binary(data: bytes) -> None:
    if _is_binary(data[:_SNIFFED_BYTES]):
        raise ReadingError("looks like binary data, expected text; rename it or add it to .searchsvcignore")


def _is_binary(head: bytes) -> bool:
    return len(head) - len(head.translate(None, _CONTROL)) > _BINARY_SHARE * len(head)
