"""Where the text of notes goes: to the end of the section that refers to them first.

A document may hold many chapters, or all of them. A note belongs to what it explains, and that is known
best when the text is there. So references are written with a control character until then.
"""

import re

from searchsvc.importing.epub_links import HEADING

_SIGN = "\x15"
NOTE_MARK = re.compile(f"{_SIGN}(\\d+){_SIGN}")
_SECTION = re.compile(f"^(?={HEADING}\\d)", re.MULTILINE)
_LAST_RULE = re.compile(r"(?:^|\n\n)\*\*\*\s*\Z")
_LAST_PAGES = re.compile(r"(?:(?:^|\n\n)<!-- page \d+ -->)+\s*\Z")


def reference(number: int) -> str:
    """Return a reference to a note as it is written until the notes have their place."""
    return f"{_SIGN}{number}{_SIGN}"


def take_marks(text: str) -> tuple[str, str]:
    """Return a text without references, and the references."""
    return NOTE_MARK.sub("", text), "".join(found.group() for found in NOTE_MARK.finditer(text))


def place_notes(texts: list[str], homes: dict[int, int], definitions: dict[int, str]) -> list[str]:
    """Return the texts of all documents with their notes.

    ``homes`` has the document that refers to a note first: a note goes there when its reference has not
    become one, because it stood in code.
    """
    left = dict(definitions)
    placed = [[_with_notes(section, left) for section in _SECTION.split(text)] for text in texts]
    for number in sorted(left):
        home = homes.get(number, 0)
        if home < len(placed) and number in left:
            placed[home][-1] = _with_those(placed[home][-1], [number], left)
    return [_LAST_RULE.sub("", NOTE_MARK.sub(r"[^\1]", "".join(sections))) for sections in placed]


def _with_notes(section: str, left: dict[int, str]) -> str:
    return _with_those(section, _numbers(section), left)


def _with_those(section: str, numbers: list[int], left: dict[int, str]) -> str:
    """Return a section with those notes, and those that they refer to; takes them out of ``left``."""
    lines, waiting = list[str](), list(reversed(numbers))
    while waiting:
        number = waiting.pop()
        if number in left:
            text = left.pop(number)
            lines.append(f"\n\n[^{number}]: " + _indented(text))
            waiting += reversed(_numbers(text))
    if not lines:
        return section
    # A page mark at the end is that of the next section.
    pages = _LAST_PAGES.search(section)
    body, tail = (section[: pages.start()], pages.group()) if pages else (section, "")
    body = _LAST_RULE.sub("", body.rstrip("\n"))
    return body + "".join(lines) + "\n\n" + (tail.strip("\n") + "\n\n" if tail else "")


def _numbers(text: str) -> list[int]:
    return [int(found.group(1)) for found in NOTE_MARK.finditer(text)]


def _indented(text: str) -> str:
    """Return the text of a note, its later lines set in as they belong to it."""
    lines = text.split("\n")
    return "\n".join([lines[0], *("    " + line if line.strip() else "" for line in lines[1:])])
