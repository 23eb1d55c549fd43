"""A heading as a caller remembers it -> the section that is meant.

Exact names come first, in this order: the slug of an id, its last part, an anchor, the heading as written,
the heading but for case, emphasis, spacing and Unicode forms (``#`` marks choose the level where it exists),
a path of headings, the same words. Else a heading scores the mean of what the words asked for earn in it:

    1.00  a whole word                              0.80  the beginning of a word
    0.95  two words for one, or one for two         0.75  a usual short form (db); a beginning over a blank;
    0.90  another form of it; a part of Chinese           a number that does not lead the heading
    0.70  the initials; 0.60 when words are left    0.65  a part of a word; 0.60 when it goes on beyond one

Parts count from four characters on; two or three are a word, its beginning or initials; one is a word.
What only a heading above holds earns 0.6 of that; words without topic count only when there are no others.
A fifth of the score is the share of the heading that is matched; a number other than the asked one halves
it. From 0.5 on it is an answer, unless others are within 0.05: they are told, not guessed.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from itertools import islice, pairwise

from searchsvc.errors import NotFound, QueryError
from searchsvc.items import Section
from searchsvc.languages import FUNCTION_WORDS, language_of_question
from searchsvc.reading.structure import plain_text
from searchsvc.tokens import STOP_WORDS, Tokenizer, fold, is_unspaced, words

THRESHOLD = 0.5
_TIE, _MIN_LIKENESS = 0.05, 0.3
_COVERAGE, _ABOVE, _OTHER_NUMBER = 0.2, 0.6, 0.5
_SHOWN, _NEAREST, _MIN_PART, _MIN_LONGER = 8, 3, 4, 5
_MAX_TEXT, _MAX_WORDS, _MAX_WORD, _MAX_NAMES, _MAX_KIN = 400, 16, 64, 60, 100
_ALL = 1_000_000
"""As a length: the whole heading is matched."""
_MARKS = re.compile(r"(#{1,6})\s+(.*)|(#{2,6})([^\s#].*)", re.DOTALL)
_AFTER = re.compile(r"\{:?\s?#[^{}]*\}$|\s#+$")
_PATHS = tuple(re.compile(f" ?[{signs}] ?") for signs in (">›»→", "#", "/", ">›»→#/"))
_EMPHASIS = re.compile(r"[*`]|==|~~|(?<!\w)_{1,2}(?=\S)|(?<=\S)_{1,2}(?!\w)")
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe0e\ufe0f\ufeff]")
_SMART = str.maketrans("‘’‚“”„«»‐‑–—−", '\'\'\'"""""-----')
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
_RUN = re.compile(f"[{_UNSPACED}]+|[^{_UNSPACED}.\\-'’_:/]+")
_NUMBER = re.compile(r"v?(\d+(?:[.\-:/]\d+)*)")
_SHORT_FORMS = {
    "cfg": "config", "cmd": "command", "ctx": "context", "db": "database", "fs": "filesystem",
    "js": "javascript", "k8s": "kubernetes", "msg": "message", "pg": "postgres", "pkg": "package",
}  # fmt: skip
_GENERIC = frozenset("section chapter part heading seccion capitulo apartado abschnitt kapitel".split())
"""Say that a heading is meant, not which: they count where a heading has them, and cost nothing elsewhere."""
_ENDINGS = frozenset(["", *"s es r n do da ndo cion ciones dor dora miento mientos en ung ungen".split()])
"""Of words of one family, mostly Spanish ones; the stemmer knows those of English."""

Row = dict[int, tuple[float, int]]
"""What a word earns, and how many characters of the heading it matches, by place of the section."""
Fit = tuple[float, bool]
"""The score of a heading, and whether words count in it that only the headings above hold."""


def match_section(sections: Sequence[Section], asked: str, location: str) -> int:
    """Return the place of the section that ``asked`` means.

    Raises ``NotFound`` naming the nearest, ``QueryError`` naming the candidates when several fit.
    """
    headings, written = Headings(sections), asked.strip()
    wanted = _without_location(written, location)
    for found in _exact(headings, written, wanted):
        so_written = [place for place in found if sections[place].title == written]
        if len(found) > 1 and len(so_written) != 1:
            raise _ambiguous(sections, found, asked, location)
        if found:
            return found[0] if len(found) == 1 else so_written[0]
    level, heading = _parted(wanted)
    fits = heading_fits(headings, heading)
    best = max((score for score, _ in fits.values()), default=0.0)
    if best < THRESHOLD:
        raise _missing(headings, fits, asked, location)
    near = {place for place, (score, _) in fits.items() if score >= max(THRESHOLD, best - _TIE)}
    near = {place for place in near if not (fits[place][1] and near & set(headings.above(place)))}
    near = {place for place in near if sections[place].level == level} or near
    if len(near) > 1:
        raise _ambiguous(sections, sorted(near, key=lambda at: (-fits[at][0], at)), asked, location)
    return near.pop()


def last_line(section: Section, asked: str) -> int:
    """Return where a section ends that is called so: a note's title stands for all of it, its id does not."""
    is_id = asked.strip().rpartition("#")[2].strip("/") == section.slug
    return section.read_end if is_id else section.subtree_end


def comparable(heading: str) -> str:
    """Return a heading without letter case, emphasis, and differences of quotes, forms and white space."""
    if not heading.isascii():
        heading = unicodedata.normalize("NFKC", _INVISIBLE.sub("", heading.translate(_SMART)))
    return " ".join(_EMPHASIS.sub("", heading).split()).casefold()


def _without_location(written: str, location: str) -> str:
    """Return what is asked for in a note, without the name of the note, and of its root, in front."""
    text, name = _nfc(written), _nfc(location)
    for given in (text, text.partition(":")[2]):
        for before in (name, name.partition(":")[2]):
            if before and given.startswith(f"{before}#"):
                return given[len(before) + 1 :].strip()
    return text


def _parted(wanted: str) -> tuple[int, str]:
    """Return the level that ``#`` marks give, else 0, and the heading without them."""
    marks = _MARKS.fullmatch(wanted if wanted.isascii() else unicodedata.normalize("NFKC", wanted))
    if not marks:
        return 0, wanted.removeprefix("#")
    return len(marks[1] or marks[3]), _AFTER.sub("", marks[2] or marks[4] or "")


def _exact(headings: "Headings", written: str, wanted: str) -> Iterator[list[int]]:
    """Yield the sections that bear the name, from the surest kind of name to the least."""
    find, slug = headings.where, wanted.lstrip("#").strip("/")
    level, heading = _parted(wanted)
    anchor = slug.lower()
    yield find(lambda section: section.slug in (written, wanted))
    yield find(lambda section: _nfc(section.slug) == slug)
    if slug and wanted.startswith("#"):  # as in an address, where the last part of an id does not occur
        yield find(lambda section: slug in section.anchors)
    yield find(lambda section: _nfc(section.slug).rpartition("/")[2] == slug)
    if slug:
        yield find(lambda section: slug in map(_nfc, section.anchors))
    if wanted:
        yield find(lambda section: section.title in (written, wanted))
    shown = plain_text(heading) if len(heading) <= _MAX_TEXT else heading
    for name in filter(None, dict.fromkeys(map(comparable, (wanted, heading, shown)))):
        found = [place for place, title in enumerate(headings.titles) if title == name]
        yield [place for place in found if headings.sections[place].level == level] or found
    if slug:  # in any case, but after the headings: of two that are called the same it names the first
        yield find(lambda section: anchor in (_nfc(name).lower() for name in section.anchors))
    yield from _by_path(headings, wanted)
    asked = _names(comparable(heading)) if len(heading) <= _MAX_TEXT else ()
    if asked:
        yield [place for place, names in enumerate(headings.names) if names == asked]
        yield [place for place, names in enumerate(headings.names) if "".join(names) == "".join(asked)]


def _by_path(headings: "Headings", wanted: str) -> Iterator[list[int]]:
    """Yield sections by headings from the outside in (``A > B``, ``A/B``, ``A#B``), without gaps first."""
    text = " ".join(wanted.split())
    for parts in (pattern.split(text) for pattern in _PATHS):
        names = [comparable(_parted(part)[1]) for part in parts[:20] if part]
        if 2 <= len(names) <= 6 and len(parts) <= 20:
            ends = [place for place, title in enumerate(headings.titles) if title == names[-1]]
            paths = {end: [headings.titles[at] for at in (*headings.above(end), end)] for end in ends}
            found = [at for at in ends for way in [iter(paths[at])] if all(name in way for name in names)]
            yield [at for at in found if paths[at][-len(names) :] == names] or found


class Headings:
    """The sections of a note, with what headings are compared by, made when it is needed."""

    def __init__(self, sections: Sequence[Section]) -> None:
        self.sections = sections

    @cached_property
    def titles(self) -> list[str]:
        """The headings, comparable."""
        return [comparable(section.title) for section in self.sections]

    @cached_property
    def names(self) -> list[tuple[str, ...]]:
        """The words of each heading, folded."""
        return [_names(title) for title in self.titles]

    def where(self, is_meant: Callable[[Section], bool]) -> list[int]:
        """Return the places of the sections that pass a test."""
        return [place for place, section in enumerate(self.sections) if is_meant(section)]

    def above(self, place: int) -> list[int]:
        """Return the places of the headings above one, from the outside in."""
        found: list[int] = []
        while 0 <= (parent := self.sections[place].parent) < place:
            found.insert(0, place := parent)
        return found


def _names(title: str) -> tuple[str, ...]:
    """Return the words of a heading, folded; numbers such as 3.2 whole, Chinese apart from the rest."""
    found: list[str] = []
    for chunk in words(fold(title[:_MAX_TEXT])):
        number = _NUMBER.fullmatch(chunk)
        found += [number[1]] if number else [run[:_MAX_WORD] for run in _RUN.findall(chunk)]
    return tuple(found[:_MAX_NAMES])


def heading_fits(headings: Headings, asked: str) -> dict[int, Fit]:
    """Return how the headings fit that share a word with a question, by place."""
    text = comparable(asked[:_MAX_TEXT])
    spoken = _names(text)[:_MAX_WORDS]
    idle = STOP_WORDS | FUNCTION_WORDS.get(language_of_question(text), frozenset())
    topics = [word for word in dict.fromkeys(spoken) if word not in idle] or list(dict.fromkeys(spoken))
    vocabulary = _Vocabulary(headings.names if topics else ())
    rows = [vocabulary.row(word, spoken) for word in topics]
    above = [_inherited(headings.sections, row) for row in rows]
    fits: dict[int, Fit] = {}
    for place in sorted(set[int]().union(*rows)):
        earned, matched, counted, inherits, lacks_number = 0.0, 0, 0, False, False
        for word, row, higher in zip(topics, rows, above, strict=True):
            own, length = row.get(place, (0.0, 0))
            value = max(own, _ABOVE * higher.get(place, 0.0))
            earned, matched = earned + value, matched + length
            counted += value > 0 or word not in _GENERIC
            inherits |= value > own
            lacks_number |= not value and word[0].isdigit()
        names = headings.names[place]
        whole = sum(len(name) for name in names if name not in idle) or len("".join(names))
        score = earned / counted * (1 - _COVERAGE + _COVERAGE * min(1.0, matched / whole))
        if lacks_number and any(name[0].isdigit() for name in names):
            score *= _OTHER_NUMBER
        fits[place] = score, inherits
    return fits


def _inherited(sections: Sequence[Section], row: Row) -> dict[int, float]:
    """Return the most that a word earns in the headings above each section."""
    best: dict[int, float] = {}
    for place, section in enumerate(sections if row else ()):
        if 0 <= section.parent < place:
            best[place] = max(row.get(section.parent, (0.0, 0))[0], best.get(section.parent, 0.0))
    return best


class _Vocabulary:
    """The words of all headings, each once, so that a word asked for is held against few of them."""

    def __init__(self, headings: Sequence[tuple[str, ...]]) -> None:
        self._headings = headings
        self._words, self._pairs, self._initials = _Known(), _Known(), _Known()
        for place, names in enumerate(headings):
            for name in names:
                self._words.setdefault(name, []).append(place)
            for first, second in pairwise(names):
                self._pairs.setdefault(first + second, []).append(place)
            for of in (names, [name for name in names if name not in STOP_WORDS]):
                if len(of) > 1:
                    self._initials.setdefault("".join(name[0] for name in of), []).append(place)

    def row(self, word: str, spoken: Sequence[str]) -> Row:
        """Return what a word earns in each heading; ``spoken`` are all that were asked for."""
        row: Row = {}
        for places, value, length in self._earned(word, spoken):
            for place in places:
                row[place] = max(row.get(place, (0.0, 0)), (value, length))
        return row

    def _earned(self, word: str, spoken: Sequence[str]) -> Iterator[tuple[Sequence[int], float, int]]:
        size, same = len(word), self._words.get(word, [])
        if _NUMBER.fullmatch(word):
            firsts = [self._headings[place][0] for place in same]
            leads = [at for at, first in zip(same, firsts, strict=True) if first in _GENERIC | {word}]
            yield from ((leads, 1.0, size), (same, 0.75, size))
            return
        yield same, 1.0, size
        for pair in (a + b for a, b in pairwise(spoken) if word in (a, b)):
            yield self._words.get(pair, []), 0.95, size
            yield from ((places, 0.75, size) for _, places in self._words.holding(f"\n{pair}"))
        yield self._pairs.get(word, []), 0.95, size
        if size > 1:
            yield from self._unspaced(word) if is_unspaced(word) else self._alike(word)

    def _alike(self, word: str) -> Iterator[tuple[Sequence[int], float, int]]:
        """Yield the headings that have a word like this one, other than itself."""
        size = len(word)
        yield from ((places, 0.8, size) for _, places in self._words.holding(f"\n{word}"))
        if size < _MIN_PART:
            for letters, places in self._initials.holding(f"\n{word}"):
                yield places, 0.7 if letters == word else 0.6, _ALL
            full = f"\n{_SHORT_FORMS.get(word, chr(0))}"
            yield from ((places, 0.75, len(name)) for name, places in self._words.holding(full))
            return
        yield self._initials.get(word, []), 0.7, _ALL
        yield from ((places, 0.75, size) for _, places in self._pairs.holding(f"\n{word}"))
        yield from ((places, 0.65, size) for _, places in self._words.holding(word))
        for name, places in islice(self._words.holding(f"\n{word[:_MIN_PART]}"), _MAX_KIN):
            if _are_kin(word, name):
                yield places, 0.9, len(name)
        yield from ((self._words.get(word[:end], []), 0.6, end) for end in range(_MIN_LONGER, size))

    def _unspaced(self, word: str) -> Iterator[tuple[Sequence[int], float, int]]:
        """Yield the headings that hold a run of a script without blanks, or some of its pairs."""
        yield from ((places, 0.95, len(word)) for _, places in self._words.holding(f"\n{word}"))
        yield from ((places, 0.9, len(word)) for _, places in self._words.holding(word))
        pairs, held = {a + b for a, b in pairwise(word)}, dict[int, int]()
        for pair in pairs:
            for place in {place for _, places in self._words.holding(pair) for place in places}:
                held[place] = held.get(place, 0) + 1
        yield from (([place], 0.9 * count / len(pairs), count + 1) for place, count in held.items())


class _Known(dict[str, list[int]]):
    """The places of words, searched as one text: far faster than word by word."""

    @cached_property
    def _lines(self) -> str:
        return "\n".join(["", *self, ""])

    def holding(self, part: str) -> Iterator[tuple[str, list[int]]]:
        """Yield the words that hold a part, with their places; after a line break, those it begins."""
        at = self._lines.find(part)
        while at >= 0:
            end = self._lines.index("\n", at + 1)
            name = self._lines[self._lines.rfind("\n", 0, at + 1) + 1 : end]
            yield name, self[name]
            at = self._lines.find(part, end)


_tokenizer = cache(Tokenizer)


def _are_kin(word: str, name: str) -> bool:
    """Tell whether two words that begin alike are forms of one."""
    if _tokenizer().terms_of_word(word) == _tokenizer().terms_of_word(name):
        return True
    least = min(len(word), len(name))
    same = next((at for at in range(least) if word[at] != name[at]), least)
    return any({word[at:], name[at:]} <= _ENDINGS for at in range(same, _MIN_PART - 1, -1)[:3])


def _nfc(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def _ambiguous(sections: Sequence[Section], places: Sequence[int], asked: str, location: str) -> QueryError:
    shown = "; ".join(_named(sections[place], location) for place in places[:_SHOWN])
    more = f" and {len(places) - _SHOWN} more" if len(places) > _SHOWN else ""
    return QueryError(f"{_quoted(asked)} means several sections of {location}; give one id: {shown}{more}")


def _missing(headings: Headings, fits: Mapping[int, Fit], asked: str, location: str) -> NotFound:
    """Name the headings that look most alike, letter by letter, then those that share a word."""
    wanted = {a + b for a, b in pairwise(fold(comparable(asked[:_MAX_TEXT])))}
    alike: list[tuple[float, int]] = []
    for place, title in enumerate(headings.titles if wanted else ()):
        pairs = {a + b for a, b in pairwise(fold(title[:_MAX_TEXT]))}
        alike.append((-2 * len(wanted & pairs) / (len(wanted) + len(pairs)), place))
    places = [place for likeness, place in sorted(alike) if likeness <= -_MIN_LIKENESS]
    places += sorted(fits, key=lambda at: (-fits[at][0], at))
    what = "nearest" if places else "it begins with"
    near = list(dict.fromkeys(places or range(len(headings.sections))))[:_NEAREST]
    shown = "; ".join(_named(headings.sections[place], location) for place in near) or "no sections at all"
    then = f"md_tree(path) with path={location!r} lists all of them"
    return NotFound(f"{location} has no section {_quoted(asked)}; {what}: {shown}. {then}")


def _named(section: Section, location: str) -> str:
    title = f"{_quoted(section.title)}, " if section.title else ""
    return f"{location}#{section.slug} ({title}L{section.line_start}-{section.read_end})"


def _quoted(text: str) -> str:
    shown = " ".join(text.split())
    return repr(shown if len(shown) <= 80 else f"{shown[:80]}…")
