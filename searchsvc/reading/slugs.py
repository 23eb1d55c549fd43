"""Heading text -> the anchor GitHub gives it.

Follows github-slugger (https://github.com/Flet/github-slugger): lower case, letters, marks, digits,
underscores and hyphens of every script kept, blanks to hyphens, and a number for what was seen before.
"""

import re
import unicodedata

_DROPPED = re.compile(r"[^a-z0-9_ -]+")
_KEPT = frozenset(("Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "Pc"))


def slug(text: str) -> str:
    """Return the anchor of a heading text, without regard to other headings; may be empty."""
    if text.isascii():
        return _DROPPED.sub("", text.lower()).replace(" ", "-")
    kept = []
    for character in text.lower():
        if character == " ":
            kept.append("-")
        elif character in "-_" or unicodedata.category(character) in _KEPT or _is_circled(character):
            kept.append(character)
    return "".join(kept)


def _is_circled(character: str) -> bool:
    """Tell a letter in a circle, which Unicode counts as alphabetic, from other symbols."""
    return "\u24b6" <= character <= "\u24e9"


class Slugger:
    """Makes slugs unique within one scope, by github-slugger's numbering."""

    def __init__(self, taken: tuple[str, ...] = ()) -> None:
        self._seen: dict[str, int] = dict.fromkeys(taken, 0)

    def unique(self, base: str) -> str:
        """Return ``base``, or ``base-1``, ``base-2``, … when it was returned before."""
        result, number = base, self._seen.get(base, 0)
        while result in self._seen:
            number += 1
            result = f"{base}-{number}"
        if result != base:
            self._seen[base] = number
        self._seen[result] = 0
        return result
