"""MMLongBench-Doc as a corpus and questions: ``python -m benchmark.study.mmlongbench --help``.

Takes the benchmark's own ``samples.json`` and folder of PDFs, by path: its data is CC BY-NC and no part of
this project. The PDFs are imported as ``searchsvc import`` does it; the pages of the evidence become the
lines between page marks. See Ma et al., "MMLongBench-Doc" (2024).
"""

import ast
import json
import random
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmark.core import say
from benchmark.errors import BenchmarkError, Parser, run_command
from benchmark.study.questions import NOT_ANSWERABLE, Evidence, Question
from searchsvc.importing.job import import_documents
from searchsvc.reading.decode import decode
from searchsvc.reading.frontmatter import read_front_matter
from searchsvc.reading.pages import Pages, read_pages

UNANSWERABLE = "unanswerable"
_FORMATS = {"str": "Str", "int": "Int", "float": "Float", "list": "List", "none": "None"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    return run_command(_run, arguments)


def _run(arguments: Sequence[str] | None) -> None:
    parser = Parser(
        prog="python -m benchmark.study.mmlongbench",
        description="Make a corpus and a question file of MMLongBench-Doc.",
    )
    parser.add_argument("--samples", type=Path, required=True, metavar="FILE", help="its samples.json")
    parser.add_argument("--pdfs", type=Path, required=True, metavar="DIR", help="the folder of its PDFs")
    parser.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="gets corpus/ and questions.jsonl"
    )
    parser.add_argument("--per-source", type=int, default=0, metavar="N", help="at most so many questions of "
                        "each source of evidence (unanswerable ones are a source); 0 for all")  # fmt: skip
    parser.add_argument("--seed", type=int, default=1, help="of what --per-source draws (default 1)")
    given = parser.parse_args(arguments)
    samples = choose(read_samples(given.samples), given.per_source, given.seed)
    places = _imported(samples, given.pdfs, given.out / "corpus")
    questions = [make_question(number, sample, given.out / "corpus", places) for number, sample in samples]
    kept = [question for question in questions if question is not None]
    file = given.out / "questions.jsonl"
    file.write_text("".join(f"{json.dumps(asdict(q), ensure_ascii=False)}\n" for q in kept), encoding="utf-8")
    print(f"{len(kept)} of {len(samples)} questions on {len(places)} documents in {given.out}")


def read_samples(file: Path) -> list[tuple[int, dict[str, Any]]]:
    """Read ``samples.json``, each sample with its place; ``BenchmarkError`` for another kind of file."""
    try:
        samples = json.loads(file.read_text(encoding="utf-8"))
        return [(n, {"doc_id": s["doc_id"], "question": s["question"], **s}) for n, s in enumerate(samples)]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BenchmarkError(
            f"{file} cannot be read as samples.json of MMLongBench-Doc ({type(error).__name__}: {error})"
        ) from error


def choose(
    samples: list[tuple[int, dict[str, Any]]], most: int, seed: int
) -> list[tuple[int, dict[str, Any]]]:
    """Return at most so many samples of each source of evidence, all when ``most`` is 0."""
    if not most:
        return samples
    tiers: dict[str, list[tuple[int, dict[str, Any]]]] = defaultdict(list)
    for sample in samples:
        tiers[_sources(sample[1])[0]].append(sample)
    draw = random.Random(seed)
    chosen = [s for name in sorted(tiers) for s in draw.sample(tiers[name], min(most, len(tiers[name])))]
    return sorted(chosen, key=lambda sample: sample[0])


def make_question(
    number: int, sample: Mapping[str, Any], corpus: Path, places: Mapping[str, str]
) -> Question | None:
    """Return the question of a sample; none when its document was not imported."""
    path = places.get(str(sample["doc_id"]))
    if path is None:
        return None
    sources = _sources(sample)
    is_answerable = sources != [UNANSWERABLE]
    answer_format = _FORMATS.get(str(sample.get("answer_format", "str")).lower(), "Str")
    return Question(
        id=f"mmlongbench-{number:04}",
        kind=sources[0],
        question=str(sample["question"]),
        answer=str(sample.get("answer", "")) if is_answerable else NOT_ANSWERABLE,
        answer_format=answer_format if is_answerable else "None",  # type: ignore[arg-type]
        scope="document",
        documents=(path,),
        evidence=tuple(_evidence(corpus, path, _listed(sample.get("evidence_pages"))))
        if is_answerable
        else (),
        tags=(*sources, str(sample.get("doc_type", ""))),
    )


def _sources(sample: Mapping[str, Any]) -> list[str]:
    if str(sample.get("answer_format", "")).lower() == "none" or sample.get("answer") == NOT_ANSWERABLE:
        return [UNANSWERABLE]
    return [str(source) for source in _listed(sample.get("evidence_sources"))] or ["unknown"]


def _listed(value: Any) -> list[Any]:
    """Return a list that may be written as text, as in ``"[3, 5]"``."""
    if isinstance(value, str):
        try:
            value = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            return []
    return list(value) if isinstance(value, list | tuple) else []


def _imported(samples: Sequence[tuple[int, dict[str, Any]]], pdfs: Path, corpus: Path) -> dict[str, str]:
    """Import the documents of samples and return the path of each in the corpus, by the name of its PDF."""
    names = sorted({str(sample["doc_id"]) for _, sample in samples})
    # A name with folders in it would lead out of the folder.
    files = {str(pdfs / name): name for name in names if name == Path(name).name and (pdfs / name).is_file()}
    for name in set(names) - set(files.values()):
        say(f"{name} is not in {pdfs}: its questions are left out")
    report = import_documents(files, into=corpus)
    places = {}
    for row in report.rows:
        if row.folder is None:
            say(f"{row.path}: {row.reason}: its questions are left out")
        else:
            places[files[row.path]] = f"{row.folder.name}/index.md"
    return places


def _evidence(corpus: Path, path: str, pages: Sequence[Any]) -> list[Evidence]:
    lines = decode((corpus / path).read_bytes()).lines
    marks = read_pages(lines, read_front_matter(lines).properties)
    return [_on_page(path, marks, int(page), len(lines)) for page in pages]


def _on_page(path: str, marks: Pages, page: int, count: int) -> Evidence:
    found = marks.range(page, page, count)
    first, last = found or (0, 0)
    return Evidence(path, first, last, (page,))


if __name__ == "__main__":
    sys.exit(main())
