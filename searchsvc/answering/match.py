"""A heading as a caller remembers it -> the section that is meant.

Exact names come first: ids, anchors, headings. Else every heading gets a score from 0 to 1 for the words of
the question, by the length of each: one character must be a word of the heading; two or three may begin one,
be one, or be the initials of several; longer ones may stand inside a word too. At least half is wanted, and
near ties are told, not guessed.
"""

import difflib
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence

from searchsvc.errors import NotFound, QueryError
from searchsvc.items import Section
from searchsvc.tokens import fold

THRESHOLD = 0.5
_TIE = 0.05
_SHOWN = 8
_MAX_ASKED = 400
_MAX_WORDS = 20
_MARKS = re.compile(r"(#{1,6})[ \t]+(.*)", re.DOTALL)
_PATH = re.compile(r"\s*(?:>|/|#)\s*")
_EMPHASIS = re.compile(r"[*`]|==|~~")
_WORD = re.compile(r"\w+")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")
_QUOTES = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u00a0": " "})

_WHOLE, _START, _INITIALS, _INSIDE = 1.0, 0.8, 0.7, 0.6
"""What a word of the question earns: as a whole word, its beginning, initials, a part of it."""
_COVERAGE = 0.2
"""Share of the score that depends on how much of the heading is matched."""


def match_section(sections: Sequence[Section], asked: str, location: str) -> int:
    """Return the place of the section that ``asked`` means.

    Raises ``NotFound`` naming the nearest, ``QueryError`` naming the candidates when several fit.
    """
    wanted = asked.strip().removeprefix(f"{location}#").strip()
    for is_meant in _exact_tests(wanted):
        found = [place for place, section in enumerate(sections) if is_meant(section)]
        if len(found) > 1:
            raise _ambiguous(sections, found, asked, location)
        if found:
            return found[0]
    found = _by_path(sections, wanted)
    if len(found) > 1:
        raise _ambiguous(sections, found, asked, location)
    return found[0] if found else _fuzzy(sections, wanted, asked, location)


def _exact_tests(wanted: str) -> Iterator[Callable[[Section], bool]]:
    slug = wanted.lstrip("#").strip("/")
    heading, marks = wanted, _MARKS.fullmatch(wanted)
    if wanted:
        yield lambda section: section.slug == wanted
        yield lambda section: section.slug == slug
        yield lambda section: section.slug.rpartition("/")[2] == slug
        yield lambda section: bool(slug) and slug in (section.anchor, section.custom_anchor)
        yield lambda section: section.title == wanted
    if marks:
        level, heading = len(marks[1]), marks[2]
        name = comparable(heading)
        yield lambda section: section.level == level and comparable(section.title) == name
    name = comparable(heading)
    if name:
        yield lambda section: comparable(section.title) == name
    anchor = unicodedata.normalize("NFC", wanted.lstrip("#").strip("/")).lower()
    if anchor:
        yield lambda section: anchor in (section.anchor, section.custom_anchor.lower())


def comparable(heading: str) -> str:
    """Return a heading without letter case, emphasis, and differences of quotes, forms and white space."""
    text = unicodedata.normalize("NFKC", _EMPHASIS.sub("", heading.translate(_QUOTES)))
    return " ".join(text.split()).casefold()


def _by_path(sections: Sequence[Section], wanted: str) -> list[int]:
    """Find a section by headings from the outside in: ``A > B``, ``A/B`` or ``A#B``."""
    names = [comparable(part) for part in _PATH.split(wanted[:_MAX_ASKED]) if part]
    if len(names) < 2:
        return []
    found = []
    for place, section in enumerate(sections):
        path = [comparable(title) for title in section.heading_path]
        above = iter(path[:-1])
        if path and path[-1] == names[-1] and all(name in above for name in names[:-1]):
            found.append(place)
    return found


def _fuzzy(sections: Sequence[Section], wanted: str, asked: str, location: str) -> int:
    text = fold(comparable(_MARKS.sub(r"\2", wanted[:_MAX_ASKED])))
    words = list(dict.fromkeys(_WORD.findall(text)))[:_MAX_WORDS]
    scores = [(_score(words, section), place) for place, section in enumerate(sections)] if words else []
    best = max((score for score, _ in scores), default=0.0)
    if best < THRESHOLD:
        raise _missing(sections, asked, location)
    near = [place for score, place in scores if score >= max(THRESHOLD, best - _TIE)]
    if len(near) > 1:
        raise _ambiguous(sections, near, asked, location)
    return near[0]


def _score(words: Sequence[str], section: Section) -> float:
    """Return how well a heading fits, 0 to 1: what the words earn, and how much of the heading they are."""
    title = fold(comparable(section.title))
    names = _WORD.findall(title)
    if not names:
        return 0.0
    joined = "".join(names)
    if len(words) > 1 and joined == "".join(words):
        return 1.0
    initials = "".join(name[0] for name in names)
    earned = [_earned(word, names, joined, initials) for word in words]
    if len(words) > 1 and joined and len(joined) >= 4:
        whole = "".join(words)
        if joined in whole:  # "road map plan" says "Roadmap"
            share = len(joined) / len(whole)
            earned = [max(value, share) for value in earned]
    matched = sum(len(word) for word, value in zip(words, earned, strict=True) if value)
    coverage = min(1.0, matched / len(joined))
    return (sum(earned) / len(earned)) * (1 - _COVERAGE + _COVERAGE * coverage)


def _earned(word: str, names: Sequence[str], joined: str, initials: str) -> float:
    """Return what one word of the question earns in a heading."""
    if word in names:
        return _WHOLE
    if len(word) >= 2 and _UNSPACED.search(word):
        return _WHOLE if word in joined else 0.0
    if len(word) == 1:
        return 0.0
    if any(name.startswith(word) for name in names):
        return _START
    if len(word) <= 3:
        return _INITIALS if initials.startswith(word) or _subsequence(word, names) else 0.0
    if word in joined:
        return _INSIDE
    # A form of the word: what the heading has is its beginning, but for an ending.
    if any(len(name) >= 4 and word.startswith(name[: max(4, len(name) - 3)]) for name in names):
        return _INSIDE
    return 0.0


def _subsequence(word: str, names: Sequence[str]) -> bool:
    """Tell an abbreviation such as ``db`` of ``database``: the first letter and consonants in order."""
    for name in names:
        if not name.startswith(word[0]) or len(name) < 2 * len(word):
            continue
        rest = iter(name[1:])
        if all(letter in rest for letter in word[1:]) and not set(word[1:]) & set("aeiou"):
            return True
    return False


def _ambiguous(sections: Sequence[Section], places: Sequence[int], asked: str, location: str) -> QueryError:
    shown = "; ".join(_named(sections[place], location) for place in places[:_SHOWN])
    more = f" and {len(places) - _SHOWN} more" if len(places) > _SHOWN else ""
    return QueryError(f"{_quoted(asked)} means several sections of {location}; give one id: {shown}{more}")


def _missing(sections: Sequence[Section], asked: str, location: str) -> NotFound:
    by_title = {comparable(section.title) or section.slug: section for section in sections[:2_000]}
    near = difflib.get_close_matches(comparable(asked)[:100], by_title, n=3, cutoff=0.4)
    shown = [by_title[name] for name in near] or list(sections[:3])
    what = "nearest" if near else "it begins with"
    listed = "; ".join(_named(section, location) for section in shown) or "no sections at all"
    return NotFound(
        f"{location} has no section {_quoted(asked)}; {what}: {listed}. md_tree(path) lists all of them"
    )


def _named(section: Section, location: str) -> str:
    title = f" ({_quoted(section.title)}, L{section.line_start})" if section.title else ""
    return f"{location}#{section.slug}{title}"


def _quoted(text: str) -> str:
    shown = " ".join(text.split())
    return repr(shown if len(shown) <= 80 else f"{shown[:80]}…")
