"""Questions with their answers and the lines, or pages, that hold the evidence."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from benchmark.errors import BenchmarkError

Scope = Literal["document", "corpus"]
AnswerFormat = Literal["Str", "Int", "Float", "List", "None"]
NOT_ANSWERABLE = "Not answerable"


@dataclass(frozen=True, slots=True)
class Evidence:
    """Lines of a note that hold an answer, or a part of it."""

    path: str
    """Relative to the corpus."""
    line_start: int = 0
    """First of the lines, from 1; 0 when only pages are known."""
    line_end: int = 0
    pages: tuple[int, ...] = ()
    """Pages of an imported document, where no lines are known."""
    quote: str = ""
    """Words that stand within the lines."""


@dataclass(frozen=True, slots=True)
class Question:
    """One question of a study."""

    id: str
    kind: str
    question: str
    answer: str
    """As MMLongBench writes answers: a list as ``['a', 'b']``, ``Not answerable`` for none."""
    answer_format: AnswerFormat
    scope: Scope = "corpus"
    documents: tuple[str, ...] = ()
    """Of scope ``document``: the notes that it is asked of."""
    language: str = "en"
    evidence: tuple[Evidence, ...] = ()
    tags: tuple[str, ...] = ()

    @property
    def is_answerable(self) -> bool:
        """Whether the corpus holds an answer."""
        return self.answer_format != "None"

    @property
    def cluster(self) -> str:
        """What questions depend on together: the first document of the evidence, or of the question."""
        first = self.evidence[0].path if self.evidence else ""
        return first or next(iter(self.documents), "") or self.id


def read_questions(file: Path) -> list[Question]:
    """Read a question file, one JSON object a line; ``BenchmarkError`` names a malformed line."""
    if not file.is_file():
        raise BenchmarkError(f"no question file at {file}")
    questions: dict[str, Question] = {}
    for number, line in enumerate(file.read_text(encoding="utf-8-sig").splitlines(), 1):
        if not line.strip():
            continue
        place = f"{file}, line {number}"
        try:
            question = _question(json.loads(line))
        except (ValueError, KeyError, TypeError) as error:
            raise BenchmarkError(f"{place}: not a question ({type(error).__name__}: {error})") from error
        if question.id in questions:
            raise BenchmarkError(f"{place}: id {question.id!r} stands there twice")
        questions[question.id] = question
    if not questions:
        raise BenchmarkError(f"{file} holds no questions")
    return list(questions.values())


def _question(facts: dict[str, Any]) -> Question:
    answer_format, scope = facts.get("answer_format", "Str"), facts.get("scope", "corpus")
    if answer_format not in get_args(AnswerFormat) or scope not in get_args(Scope):
        raise ValueError(f"answer_format is {answer_format!r}, scope is {scope!r}")
    return Question(
        id=str(facts["id"]),
        kind=str(facts.get("kind", "")),
        question=str(facts["question"]),
        answer=str(facts["answer"]),
        answer_format=answer_format,
        scope=scope,
        documents=tuple(map(str, facts.get("documents", ()))),
        language=str(facts.get("language", "en")),
        evidence=tuple(_evidence(item) for item in facts.get("evidence", ())),
        tags=tuple(map(str, facts.get("tags", ()))),
    )


def _evidence(facts: dict[str, Any]) -> Evidence:
    return Evidence(
        str(facts["path"]),
        int(facts.get("line_start", 0)),
        int(facts.get("line_end", 0)),
        tuple(map(int, facts.get("pages", ()))),
        str(facts.get("quote", "")),
    )
