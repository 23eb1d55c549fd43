"""Lines of an ignore file -> which names they leave out, by Git's rules (https://git-scm.com/docs/gitignore).

A pattern is asked about a file or folder itself only: whoever walks does not enter what is left out.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

_TRAILING_BLANKS = re.compile(r"(?<!\\) +$")
_SPECIAL = re.compile(r"[\\*?\[]")
_ALL_STARS = re.compile(r"\*+")
_CLASS = re.compile(r"\[([!^]?)((?:\]|\\.|\[:[a-z]+:\]|[^\]\\])(?:\[:[a-z]+:\]|\\.|[^\]\\])*)\]", re.DOTALL)
_MEMBER = re.compile(r"\[:([a-z]+):\]|(\\?.)(?:-(\\?[^\]\\]|\\.))?", re.DOTALL)
_NAMED = {
    "alnum": "a-zA-Z0-9", "alpha": "a-zA-Z", "blank": " \t", "digit": "0-9", "lower": "a-z", "upper": "A-Z",
    "space": r"\s", "xdigit": "0-9A-Fa-f", "punct": r"!-/:-@\[-`{-~",
}  # fmt: skip
_NEVER = r"(?!)"
_STAR = "[^/]*"
_FOLDERS = "(?:.*/)?"
_FEWEST_FOLDERS = "(?:.*?/)??"


@dataclass(frozen=True, slots=True)
class Pattern:
    """One line of an ignore file."""

    takes_back: bool
    """Whether it begins with ``!``: what it matches is not left out."""
    folders_only: bool
    by_path: bool
    """Whether it is compared with the whole path, from the folder of the file on, and not with a name."""
    wanted: str | re.Pattern[str]

    def matches(self, path: str, *, is_folder: bool) -> bool:
        """Tell whether it means an entry, ``/``-separated and relative to the folder of the ignore file."""
        if self.folders_only and not is_folder:
            return False
        name = path if self.by_path else path.rsplit("/", 1)[-1]
        return name == self.wanted if isinstance(self.wanted, str) else bool(self.wanted.fullmatch(name))


class Patterns:
    """The lines of the ignore files of one folder, in order."""

    def __init__(self, lines: Iterable[str]) -> None:
        # The last one that matches decides, so of equal lines only the last can.
        found = map(_read, dict.fromkeys(reversed(list(lines))))
        self._from_the_last = [pattern for pattern in found if pattern is not None]

    def verdict(self, path: str, *, is_folder: bool) -> bool | None:
        """Tell whether an entry is left out, by the last pattern that matches it; none where none does."""
        for pattern in self._from_the_last:
            if pattern.matches(path, is_folder=is_folder):
                return not pattern.takes_back
        return None


def _read(line: str) -> Pattern | None:
    """Return the pattern of a line; none for a blank line or a comment."""
    glob = _TRAILING_BLANKS.sub("", line)
    if glob.startswith("#"):
        return None
    takes_back = glob.startswith("!")
    glob = glob[takes_back:]
    folders_only = glob.endswith("/")
    glob = glob[: len(glob) - folders_only]
    by_path = "/" in glob
    glob = glob.removeprefix("/")
    if not glob:
        return None
    wanted = re.compile(_expression(glob), re.DOTALL) if _SPECIAL.search(glob) else glob
    return Pattern(takes_back, folders_only, by_path, wanted)


def _expression(glob: str) -> str:
    """Return the regular expression of a glob: only two stars between slashes match slashes."""
    pieces, at = [], 0
    while at < len(glob):
        sign = glob[at]
        if sign == "*":
            piece, at = _stars(glob, at)
        elif sign == "[":
            found = _CLASS.match(glob, at)
            piece, at = (_class(found), found.end()) if found else (_NEVER, len(glob))
        elif sign == "\\":
            piece, at = (re.escape(glob[at + 1]) if at + 1 < len(glob) else _NEVER), at + 2
        else:
            piece, at = ("[^/]" if sign == "?" else re.escape(sign)), at + 1
        pieces.append(piece)
    return _joined(pieces)


def _joined(pieces: Iterable[str]) -> str:
    """Put pieces together, each but the last of its kind to match where it can first: that is never worse.

    So many stars take no longer than one.
    """
    joined: list[str] = []
    star = folders = -1
    for piece in pieces:
        if piece == _STAR:
            if star >= 0:
                joined[star] = f"(?>{_STAR}?"
                joined.append(")")
            star = len(joined)
        elif piece == _FOLDERS:
            if folders >= 0:
                joined[folders] = f"(?>{_FEWEST_FOLDERS}"
                joined.append(")")
            star, folders = -1, len(joined)
        elif piece == "/":
            star = -1
        joined.append(piece)
    return "".join(joined)


def _stars(glob: str, at: int) -> tuple[str, int]:
    """Return the expression of a run of stars and where it ends, a slash after it included."""
    run = _ALL_STARS.match(glob, at)
    end = run.end() if run else at + 1
    stands_alone = glob[at - 1 : at] in ("", "/") and glob[end : end + 1] in ("", "/")
    if end - at == 1 or not stands_alone:
        return _STAR, end
    return (_FOLDERS, end + 1) if end < len(glob) else (".*", end)


def _class(found: re.Match[str]) -> str:
    """Return the expression of a bracket; a range that runs backwards holds its first sign only."""
    members = []
    for name, first, last in _MEMBER.findall(found[2]):
        if name:
            members.append(_NAMED.get(name, ""))
            continue
        low, high = first[-1], (last or first)[-1]
        members.append(f"{re.escape(low)}-{re.escape(high)}" if low <= high else re.escape(low))
    return f"[^/{''.join(members)}]" if found[1] else f"(?!/)[{''.join(members) or '/'}]"
