"""Which paths a caller means: a note, a folder or a glob, exactly as written or nearly."""

import posixpath
import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import partial

PathTest = Callable[[str], bool]

_GLOB_SIGNS = re.compile(r"[*?\[]")
_GLOB = re.compile(r"(\*\*/)|(\*\*)|(\*)|(\?)|\[([!^]?)(\]?[^\]]*)\]|(.)", re.DOTALL)


def tidy(asked: str) -> str:
    """Return a path as the index spells paths: ``/`` between names, none at the ends, composed letters."""
    path = posixpath.normpath(unicodedata.normalize("NFC", asked.strip().replace("\\", "/"))).strip("/")
    return "" if path == "." else path


def path_tests(asked: str) -> Iterator[PathTest]:
    """Yield what a path may mean, the most literal first; the first that any note meets is meant.

    A name of a note or folder comes before a glob, exact case before any case, and a glob of notes before
    one of folders. In a glob ``*`` and ``?`` stay within a name, ``**`` crosses folders, and a glob
    without ``/`` is looked for in every folder. ``note#section`` means the note.
    """
    path = tidy(asked)
    for spelled in dict.fromkeys([path, path.rpartition("#")[0] or path, path.partition("#")[0] or path]):
        yield _named(spelled)
        yield _in_any_case(_named, spelled)
    if _GLOB_SIGNS.search(path):
        # Brackets are part of names more often than they are meant as a choice of characters.
        for pattern in dict.fromkeys([path.replace("[", "[[]"), path]):
            for end in ("", "/.*"):
                yield _like(pattern, end)
                yield _in_any_case(partial(_like, end=end), pattern)


def section_part(asked: str, path: str) -> str:
    """Return what follows the note's path in an address such as ``note#section``; empty when nothing does."""
    note = unicodedata.normalize("NFC", path).casefold()
    for place in [place for place, sign in enumerate(asked) if sign == "#"][::-1]:
        if tidy(asked[:place]).casefold() in (note, _stem(note)):
            return asked[place:].lstrip("# ")
    return ""


def _named(name: str) -> PathTest:
    if not name:
        return lambda path: True
    folder = f"{name}/"
    return lambda path: path == name or path.startswith(folder) or _stem(path) == name


def _like(pattern: str, end: str) -> PathTest:
    anywhere = "" if "/" in pattern else "(?:.*/)?"
    try:
        expression = re.compile(f"{anywhere}{_GLOB.sub(_translated, pattern)}{end}", re.DOTALL)
    except re.error:  # A range of characters that ends before it begins.
        return lambda path: False
    return lambda path: bool(expression.fullmatch(path) or expression.fullmatch(_stem(path)))


def _in_any_case(make: Callable[[str], PathTest], name: str) -> PathTest:
    test = make(name.casefold())
    return lambda path: test(path.casefold())


def _stem(path: str) -> str:
    return path.rpartition(".")[0]


def _translated(match: re.Match[str]) -> str:
    folders, anything, run, one, negation, characters, literal = match.groups()
    if folders:
        return "(?:.*/)?"
    if anything:
        return ".*"
    if run:
        return "[^/]*"
    if one:
        return "[^/]"
    if characters:
        return f"(?!/)[{'^' if negation else ''}{_characters(characters)}]"
    return re.escape(literal or match[0])


def _characters(text: str) -> str:
    """Return the inside of a class of characters; ranges keep their meaning."""
    return re.sub(r"[\\\[\]^&~|]", r"\\\g<0>", text)
