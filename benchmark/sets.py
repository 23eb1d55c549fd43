"""Sets of queries with known answers: a corpus, and queries whose objects have ``kind`` and ``relevant``.

A set is a folder with ``corpus/`` and ``queries.jsonl``, or one with ``notes/`` and ``questions.jsonl`` as
our own (``benchmark/vault``) is: there the sections that hold the lines of evidence are relevant, and
questions without evidence are left out.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmark.core import Query, read_queries
from benchmark.errors import BenchmarkError
from benchmark.study.questions import Question, read_questions
from searchsvc.items import Section
from searchsvc.reading.note import read_note

VAULT = Path(__file__).parent / "vault"
"""Our own set."""
NOTES, QUESTIONS = "notes", "questions.jsonl"


def find_sets(folders: Sequence[Path]) -> list[Path]:
    """Return the set folders among and right below the folders; ``BenchmarkError`` when one has none."""
    found: dict[Path, None] = {}
    for folder in folders:
        inner = sorted(path for path in folder.iterdir()) if folder.is_dir() else []
        sets = [path for path in (folder, *inner) if _has_queries(path) or has_questions(path)]
        if not sets:
            raise BenchmarkError(f"{folder}: expected a folder with corpus/ and queries.jsonl, or of such")
        found |= dict.fromkeys(path.resolve() for path in sets)
    return list(found)


def _has_queries(folder: Path) -> bool:
    return (folder / "corpus").is_dir() and (folder / "queries.jsonl").is_file()


def has_questions(folder: Path) -> bool:
    """Tell whether a set has questions with evidence instead of queries."""
    return (folder / NOTES).is_dir() and (folder / QUESTIONS).is_file()


def corpus_of(folder: Path) -> Path:
    """Return the folder of the notes of a set."""
    return folder / (NOTES if has_questions(folder) else "corpus")


def queries_of(folder: Path) -> list[Query]:
    """Return the queries of a set; ``BenchmarkError`` for what is malformed."""
    if not has_questions(folder):
        return read_queries(folder / "queries.jsonl")
    sections = dict[str, tuple[Section, ...]]()
    asked = [question for question in read_questions(folder / QUESTIONS) if question.evidence]
    for path in {piece.path for question in asked for piece in question.evidence}:
        file = folder / NOTES / path
        if not file.is_file():
            raise BenchmarkError(f"{folder / QUESTIONS}: there is no note {path!r}")
        sections[path] = tuple(read_note(path, file.read_bytes()).sections)
    return [
        Query(
            question.id,
            question.question,
            {
                "kind": question.kind,
                "lang": question.language,
                "relevant": [
                    {"path": path, "line_start": first, "line_end": last}
                    for path, first, last in dict.fromkeys(_sections_of(question, sections))
                ],
            },
        )
        for question in asked
    ]


def _sections_of(
    question: Question, sections: dict[str, tuple[Section, ...]]
) -> Iterator[tuple[str, int, int]]:
    for piece in question.evidence:
        for section in sections[piece.path]:
            if section.line_start <= piece.line_end and section.line_end >= piece.line_start:
                yield piece.path, section.line_start, section.line_end
