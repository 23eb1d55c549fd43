"""Real Markdown -> a larger corpus of the wanted number of sections, the same for the same sources.

The first copy of every file is verbatim. Further copies get other folder and file names, half of their
sections trade places with others of their folder, and most rare words become made-up ones. Made-up words
follow a Simon process (a new word now and then, else one used before, in proportion to its uses), so
that frequencies stay Zipf-like and the vocabulary grows with the corpus.
"""

import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmark.core import read_queries
from benchmark.errors import BenchmarkError

SEED = 20_240_501
_MOVED = 0.5
"""Share of sections that trade places in a copy."""
_RARE = 12
"""Words in at most so many sections of the sources are rare."""
_REPLACED = 0.7
"""Share of rare words that a copy replaces."""
_NEW_WORD = 0.15
"""How often a made-up word is a new one."""
_WORD = re.compile(r"(?<![\w./#\-])[A-Za-z]{4,20}(?![\w./\-])")
_FENCE = re.compile(r" {0,3}(```+|~~~+)")
_HEADING = re.compile(r" {0,3}#{1,6}(?:[ \t]|$)")
_MARKDOWN_LINK = re.compile(r"(\]\([^)\s#]*?)(\.md)(?=[)#\s])")
_WIKI_LINK = re.compile(r"(\[\[[^\]\[|#]+)")
_SYLLABLES = [a + b + c for a in "bdfgklmnprstvz" for b in "aeiou" for c in ("", "n", "r", "s", "l")]


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One Markdown file, cut at its headings."""

    path: str
    """Name of its source folder and the path below, ``/``-separated."""
    pieces: tuple[str, ...]
    """Texts from heading to heading; joined they are the file."""


def read_sources(folders: Sequence[Path]) -> list[SourceFile]:
    """Read all Markdown files under the folders, in path order.

    A folder with a ``corpus`` folder stands for that one. Raises ``BenchmarkError`` without any file.
    """
    files = []
    for number, folder in enumerate(folders):
        root = _corpus_of(folder)
        if not root.is_dir():
            raise BenchmarkError(f"{folder}: expected a folder of Markdown files")
        for path in sorted(root.rglob("*.md")):
            text = path.read_text(encoding="utf-8", errors="replace")
            name = f"{folder.resolve().name}-{number}/{path.relative_to(root).as_posix()}"
            files.append(SourceFile(name, tuple(_cut(text))))
    if not files:
        raise BenchmarkError(f"no .md files under {', '.join(map(str, folders))}")
    return files


def read_questions(folders: Sequence[Path], files: Sequence[SourceFile], wanted: int) -> list[str]:
    """Return ``wanted`` questions from the files ``queries.jsonl`` in or beside the folders, spread evenly.

    Without such files, the opening words of sections stand in.
    """
    found: list[str] = []
    for folder in folders:
        for place in (folder / "queries.jsonl", _corpus_of(folder).parent / "queries.jsonl"):
            if place.is_file():
                found += [query.text for query in read_queries(place)]
                break
    if not found:
        pieces = [piece for file in files for piece in file.pieces]
        texts = (" ".join(re.findall(r"\w{2,}", piece)[:8]) for piece in pieces)
        found = [text for text in texts if text]
    step = max(1.0, len(found) / wanted)
    return [found[int(number * step)] for number in range(min(wanted, len(found)))]


def write_corpus(files: Sequence[SourceFile], target: Path, sections: int) -> int:
    """Write a corpus of about ``sections`` sections under ``target``; return how many bytes it has."""
    maker = _Maker(files)
    written = size = 0
    for path, pieces in maker.files():
        place = target / path
        place.parent.mkdir(parents=True, exist_ok=True)
        pieces = pieces[: max(1, sections - written)]
        data = "".join(pieces).encode("utf-8", "replace")
        place.write_bytes(data)
        size += len(data)
        written += len(pieces)
        if written >= sections:
            break
    return size


class _Maker:
    """Yields files without end: the sources, then changed copies of them."""

    def __init__(self, files: Sequence[SourceFile]) -> None:
        self._files = files
        self._random = random.Random(SEED)
        self._used: list[str] = []
        self._made: set[str] = set()
        counts: Counter[str] = Counter()
        for file in files:
            for piece in file.pieces:
                counts.update(set(_WORD.findall(piece)))
        self._rare = {word for word, count in counts.items() if count <= _RARE}
        self._taken = {word.lower() for word in counts}

    def files(self) -> Iterator[tuple[str, list[str]]]:
        yield from ((file.path, list(file.pieces)) for file in self._files)
        while True:
            yield from self._copy()

    def _copy(self) -> Iterator[tuple[str, list[str]]]:
        name = self._new_word()
        pieces = [list(file.pieces) for file in self._files]
        by_folder: dict[str, list[tuple[int, int]]] = {}
        for number, file in enumerate(self._files):
            places = [(number, place) for place in range(1, len(file.pieces))]
            moved = [place for place in places if self._random.random() < _MOVED]
            by_folder.setdefault(file.path.rpartition("/")[0], []).extend(moved)
        for places in by_folder.values():
            shuffled = self._random.sample(places, len(places))
            texts = [self._files[number].pieces[place] for number, place in shuffled]
            for (number, place), text in zip(places, texts, strict=True):
                pieces[number][place] = text
        order = self._random.sample(range(len(pieces)), len(pieces))
        for number in order:
            path = self._files[number].path
            changed = [self._change(piece, name) for piece in pieces[number]]
            yield f"{name}/{path.removesuffix('.md')}-{name}.md", changed

    def _change(self, piece: str, name: str) -> str:
        """Replace rare words, and let links lead to the renamed files."""
        chosen: dict[str, str] = {}

        def other(match: re.Match[str]) -> str:
            word = match.group()
            if word not in self._rare:
                return word
            if word not in chosen:
                chosen[word] = self._word() if self._random.random() < _REPLACED else word
            return chosen[word].capitalize() if word[0].isupper() else chosen[word]

        piece = _WORD.sub(other, piece)
        piece = _MARKDOWN_LINK.sub(rf"\1-{name}\2", piece)
        return _WIKI_LINK.sub(rf"\1-{name}", piece)

    def _word(self) -> str:
        new = not self._used or self._random.random() < _NEW_WORD
        word = self._new_word() if new else self._random.choice(self._used)
        self._used.append(word)
        return word

    def _new_word(self) -> str:
        while True:
            word = "".join(self._random.choices(_SYLLABLES, k=self._random.choice((2, 3, 3, 4))))
            if word not in self._made and word not in self._taken:
                self._made.add(word)
                return word


def _corpus_of(folder: Path) -> Path:
    inner = folder / "corpus"
    return inner if inner.is_dir() else folder


def _cut(text: str) -> Iterator[str]:
    """Cut a text before each ``#`` heading outside code fences."""
    piece: list[str] = []
    fence = ""
    for line in text.splitlines(keepends=True):
        mark = _FENCE.match(line)
        if mark and not fence:
            fence = mark.group(1)
        elif mark and fence and mark.group(1).startswith(fence):
            fence = ""
        elif not fence and _HEADING.match(line) and piece:
            yield "".join(piece)
            piece = []
        piece.append(line)
    if piece and not piece[-1].endswith("\n"):
        piece[-1] += "\n"
    if piece:
        yield "".join(piece)
