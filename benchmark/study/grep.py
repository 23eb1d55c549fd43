"""What a careful agent does with grep: content words of a question, the rarest first.

Letter case is ignored and a word is found where a word of the text begins with it, so that ``boat`` finds
``boats``. What is shown is as cheap as a tool can make it: ripgrep's way of naming a file once above its
lines, files read without line numbers. How often words occur and which files hold most of them is known
only from replies that are paid for.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import log
from os.path import commonprefix

import Stemmer

from benchmark.study.evidence import Asked, Corpus, Policy, Reply, Row
from searchsvc.languages import FUNCTION_WORDS, language_of_question
from searchsvc.tokens import STOP_WORDS, is_unspaced

CONTEXT = 2
"""Lines around a match that grep shows."""
AROUND, WIDE = 10, 20
"""Lines around a match that are read."""
_COMMON = 1 / 3
"""Words in more than this share of the files are not worth a grep, while there are others."""
_MAX_GREPPED = 4
_MAX_ROWS = 100
"""Lines of one grep; a tool cuts more, or the agent does."""
_LISTED = 10
"""Files of one listing."""
_MIN_STEM = 3
_WORD = re.compile(r"\w+(?:[.\-_/:]\w+)*")
_UNSPACED = r"\u0e00-\u0eff\u3005\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_RUN = re.compile(f"[{_UNSPACED}]+|[^{_UNSPACED}]+")
_SEPARATOR = re.compile(r"[.\-_/:]+")
_KANA_ONLY = re.compile("[\u3040-\u309f]+")
_LITTLE_WORDS = frozenset(
    """about above after again all also am any anyone anything been before being below between both but
    could during each either else ever every few following for from further get gets give given gives had
    has have having he her here him his i'm if instead into its itself just keep let like made make makes
    many may me might more most much must name need needs new now off often once one only other our out
    over own per please said same say says see shall she should since so some someone something still such
    take taken takes tell than their them then there these they thing things those through too two under
    until up upon us use used uses using very want was way we were whether whom whose will within without
    would yes yet""".split()
)
"""English words that a person would not grep for, beside the function words of all languages."""
_STEMMERS = {
    "de": "german", "es": "spanish", "fr": "french", "it": "italian", "pt": "portuguese", "nl": "dutch"
}  # fmt: skip


def content_words(text: str, *, stems: bool = False) -> list[str]:
    """Return the words of a question that carry meaning, in lower case; pairs of signs where no blanks are.

    With ``stems`` words are cut as the Snowball stemmer of the question's language cuts them.
    """
    language = language_of_question(text) or "en"
    little = STOP_WORDS | FUNCTION_WORDS.get(language, frozenset())
    if language == "en":
        little |= _LITTLE_WORDS
    found: dict[str, None] = {}
    for chunk in _WORD.findall(text):
        for run in _RUN.findall(chunk):
            if is_unspaced(run[0]):
                pairs = (run[start : start + 2] for start in range(max(len(run) - 1, 1)))
                found.update((pair, None) for pair in pairs if not _KANA_ONLY.fullmatch(pair))
            elif run.lower() not in little and (len(run) > 1 or run.isdigit()):
                run = run.strip(".-_/:")
                found[_stem(run.lower(), language) if stems else run.lower()] = None
    return list(found)


def _stem(word: str, language: str) -> str:
    if not word.isalpha():
        return word
    stem: str = Stemmer.Stemmer(_STEMMERS.get(language, "english")).stemWord(word)
    # A stem such as ``happi`` begins no word of the text: what both begin with is what grep can find.
    shared = commonprefix([stem, word])
    return shared if len(shared) >= _MIN_STEM else word


@dataclass(frozen=True, slots=True)
class _Found:
    """Which words stand where, in the notes that a question is asked of."""

    words: tuple[str, ...]
    """All words, the rarest first; words that stand nowhere come last."""
    lines: dict[str, dict[str, tuple[int, ...]]]
    """Lines of the matches, by word and path; a word in the path alone has no lines."""
    files: int

    def weight(self, word: str) -> float:
        """Return how rare a word is."""
        return log(1 + self.files / len(self.lines[word]))

    @property
    def present(self) -> list[str]:
        """Words that stand somewhere, the rarest first."""
        return [word for word in self.words if self.lines[word]]

    @property
    def telling(self) -> list[str]:
        """Words that do not stand nearly everywhere; the rarest one if all do."""
        present = self.present
        return [word for word in present if len(self.lines[word]) <= self.files * _COMMON] or present[:1]

    def ranked(self) -> list[tuple[int, str]]:
        """Return the files with the number of distinct words in text and path, most and rarest first."""
        held: dict[str, list[str]] = {}
        for word in self.present:
            for path in self.lines[word]:
                held.setdefault(path, []).append(word)

        def order(path: str) -> tuple[int, float, str]:
            return -len(held[path]), -sum(map(self.weight, held[path])), path

        return [(len(held[path]), path) for path in sorted(held, key=order)]


class Grep:
    """Greps the notes of a corpus."""

    def __init__(self, corpus: Corpus) -> None:
        self.corpus = corpus
        self._matches = lru_cache(4096)(self._lines_of)

    def policies(self) -> dict[str, Policy]:
        """Return the variants by name."""
        return {
            "grep-lines": self.lines,
            "grep-around": self.around,
            "grep-files": self.files,
            "grep-lines-stems": lambda asked: self.lines(asked, stems=True),
            "grep-around-stems": lambda asked: self.around(asked, stems=True),
            "grep-around-wide": lambda asked: self.around(asked, margin=WIDE),
        }

    def lines(self, asked: Asked, *, stems: bool = False) -> Iterator[Reply]:
        """``grep -n -C 2`` of the rarest words one by one, then the files with most words, whole."""
        found = self._find(asked, stems)
        yield _counts(found)
        for word in found.telling[:_MAX_GREPPED]:
            yield self._grep(found.lines[word])
        read = set[str]()
        for path in _listed(found.ranked()):
            if isinstance(path, str):
                read.add(path)
                yield self.corpus.read(path)
            else:
                yield path
        yield from self._rest(asked, read)

    def around(self, asked: Asked, *, stems: bool = False, margin: int = AROUND) -> Iterator[Reply]:
        """Files with most words, each read some lines around its matches; then what was left out of them.

        Within a file the part with the most and rarest words is read first.
        """
        found = self._find(asked, stems)
        yield _counts(found)
        left: list[tuple[str, list[tuple[int, int]]]] = []
        for path in _listed(found.ranked()):
            if not isinstance(path, str):
                yield path
                continue
            parts = self._parts(found, path, margin)
            for first, last in parts:
                yield self.corpus.read(path, first, last)
            left.append((path, _gaps(parts, len(self.corpus.notes[path].lines))))
        for path, gaps in left:
            for first, last in gaps:
                yield self.corpus.read(path, first, last)
        yield from self._rest(asked, {path for path, _ in left})

    def files(self, asked: Asked) -> Iterator[Reply]:
        """``grep -l`` of the rarest word, those files from the top; then of the next word."""
        found = self._find(asked, False)
        yield _counts(found)
        read = set[str]()
        for word in found.present:
            paths = [path for path in sorted(found.lines[word]) if path not in read]
            yield [Row(path) for path in paths]
            for path in paths:
                read.add(path)
                yield self.corpus.read(path)
        yield from self._rest(asked, read)

    # Within

    def _find(self, asked: Asked, stems: bool) -> _Found:
        words = content_words(asked.text, stems=stems)
        # A name of several parts that stands nowhere may stand there in parts.
        words = [
            part
            for word in words
            for part in ([word] if self._matches(word) else filter(None, _SEPARATOR.split(word)))
        ]
        words = list(dict.fromkeys(words))
        matches = {word: self._matches(word) for word in words}
        if asked.is_narrowed:
            wanted = set(asked.paths)
            matches = {
                word: {path: lines for path, lines in found.items() if path in wanted}
                for word, found in matches.items()
            }
        rarest = sorted(words, key=lambda word: (not matches[word], len(matches[word]), words.index(word)))
        return _Found(tuple(rarest), matches, len(asked.paths))

    def _lines_of(self, word: str) -> dict[str, tuple[int, ...]]:
        start = "" if is_unspaced(word[0]) else r"\b"
        pattern = re.compile(start + re.escape(word), re.IGNORECASE)
        matches = {}
        for path, note in self.corpus.notes.items():
            lines = tuple(number for number, line in enumerate(note.lines, 1) if pattern.search(line))
            if lines or pattern.search(path):
                matches[path] = lines
        return matches

    def _grep(self, matches: dict[str, tuple[int, ...]]) -> Reply:
        """Return what ``rg -n -C 2 --heading`` prints, cut after ``_MAX_ROWS`` lines."""
        rows = list[Row]()
        for path in sorted(matches):
            size = len(self.corpus.notes[path].lines)
            rows.append(Row(path))
            hits = set(matches[path])
            for first, last in _merged(((hit - CONTEXT, hit + CONTEXT) for hit in hits), size):
                for row in self.corpus.rows(path, first, last):
                    number = row.place[1] if row.place else 0
                    rows.append(Row(f"{number}{':' if number in hits else '-'}{row.text}", row.place))
                rows.append(Row("--"))
        return rows if len(rows) <= _MAX_ROWS else [*rows[:_MAX_ROWS], Row("(more lines left out)")]

    def _parts(self, found: _Found, path: str, margin: int) -> list[tuple[int, int]]:
        """Return the ranges around the matches in a file, the one with the most and rarest words first."""
        held = [word for word in found.telling if found.lines[word].get(path)]
        held = held or [word for word in found.present if found.lines[word].get(path)]
        hits = [(number, word) for word in held for number in found.lines[word][path]]
        size = len(self.corpus.notes[path].lines)

        def worth(part: tuple[int, int]) -> float:
            return sum(found.weight(word) for word in {word for number, word in hits if _in(number, part)})

        parts = _merged(((number - margin, number + margin) for number, _ in hits), size)
        return sorted(parts, key=lambda part: (-worth(part), part))

    def _rest(self, asked: Asked, read: set[str]) -> Iterator[Reply]:
        """Read what no word led to, in order of paths, after a look at what there is."""
        paths = [path for path in asked.paths if path not in read]
        yield [Row(path) for path in paths]
        for path in paths:
            yield self.corpus.read(path)


def _counts(found: _Found) -> Reply:
    """Return in how many files each word stands: what an agent must know to start with the rarest."""
    return [Row(f"{word}: {len(found.lines[word])}") for word in found.words]


def _listed(ranked: Sequence[tuple[int, str]]) -> Iterator[Reply | str]:
    """Yield a listing of some files with their number of words, then the path of each; then of the next."""
    for start in range(0, len(ranked), _LISTED):
        some = ranked[start : start + _LISTED]
        yield [Row(f"{count} {path}") for count, path in some]
        yield from (path for _, path in some)


def _merged(ranges: Iterable[tuple[int, int]], size: int) -> list[tuple[int, int]]:
    """Return ranges of lines in order, within a file of ``size`` lines, those that touch as one."""
    merged: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        first, last = max(first, 1), min(last, size)
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(last, merged[-1][1])
        else:
            merged.append((first, last))
    return merged


def _gaps(parts: Sequence[tuple[int, int]], size: int) -> list[tuple[int, int]]:
    """Return the ranges of lines that no part holds."""
    gaps, start = [], 1
    for first, last in sorted(parts):
        if first > start:
            gaps.append((start, first - 1))
        start = last + 1
    return [*gaps, (start, size)] if start <= size else gaps


def _in(number: int, part: tuple[int, int]) -> bool:
    return part[0] <= number <= part[1]
