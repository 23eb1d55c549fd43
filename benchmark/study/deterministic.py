"""Evidence shown by scripted policies, without a model: ``python -m benchmark.study.deterministic``.

Each policy is given a question and shows text until all evidence is seen or 64,000 tokens are paid. Prints
evidence recall at five budgets, the differences from the best variant of grep, and where grep wins.
"""

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmark.core import Query, Session, read_queries, say
from benchmark.errors import BenchmarkError, Parser, run_command
from benchmark.sets import NOTES, QUESTIONS, VAULT, corpus_of, find_sets, has_questions
from benchmark.study.budgets import Run, answerable, average, best_grep, figures, tables
from benchmark.study.evidence import BUDGETS, CAP, MAIN, Corpus, Policy, evidence_units, read_corpus, trace
from benchmark.study.grep import Grep
from benchmark.study.intervals import estimate
from benchmark.study.policies import SEEDS, Ranked, Windows, by_chance, oracle, sequential
from benchmark.study.questions import Evidence, Question, read_questions
from benchmark.tables import markdown
from searchsvc import __version__
from searchsvc.models import DEFAULT_MODEL
from searchsvc.tokens import cost


@dataclass(frozen=True, slots=True)
class Set:
    """Questions over one corpus."""

    name: str
    corpus: Path
    questions: tuple[Question, ...]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    return run_command(_run, arguments)


def _run(arguments: Sequence[str] | None) -> None:
    parser = Parser(prog="python -m benchmark.study.deterministic", description="Evidence within a budget.")
    parser.add_argument("--corpus", type=Path, metavar="DIR", help="notes (default: our own)")
    parser.add_argument("--questions", type=Path, metavar="FILE", help="their questions (default: our own)")
    parser.add_argument("--data", type=Path, nargs="+", action="extend", metavar="DIR", help="set folders")
    parser.add_argument("--profile", default=DEFAULT_MODEL, help="model card name, or none")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the figures of every question here")
    parser.add_argument("--baseline", type=Path, metavar="FILE", help="an earlier --out to compare with")
    given = parser.parse_args(arguments)
    if bool(given.corpus) != bool(given.questions) or (given.data and given.corpus):
        raise BenchmarkError("give --corpus and --questions together, or --data, or none of them")
    baseline = _read_runs(given.baseline) if given.baseline else {}
    runs = list[Run]()
    for one in _sets(given.data, given.corpus, given.questions):
        run = measure(one, given.profile)
        runs.append(run)
        for title, table in tables(run):
            print(f"\n## {title}\n\n{table}")
        if run["name"] in baseline:
            title = f"{run['name']}: recall at {BUDGETS[MAIN]:,} tokens minus that of {given.baseline.name}"
            print(f"\n## {title}\n\n{_changes(run, baseline[run['name']])}")
    if given.out:
        document = {"version": __version__, "runs": runs}
        given.out.write_text(json.dumps(document, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def _sets(folders: Sequence[Path] | None, corpus: Path | None, questions: Path | None) -> list[Set]:
    if folders:
        return [Set(folder.name, corpus_of(folder), _asked(folder)) for folder in find_sets(folders)]
    file = questions or VAULT / QUESTIONS
    return [Set(file.parent.name, corpus or VAULT / NOTES, tuple(read_questions(file)))]


def _asked(folder: Path) -> tuple[Question, ...]:
    if has_questions(folder):
        return tuple(read_questions(folder / QUESTIONS))
    return tuple(map(as_question, read_queries(folder / "queries.jsonl")))


def as_question(query: Query) -> Question:
    """Return a query with relevant ranges of lines as a question whose evidence these are.

    Ranges that a scorer drops, since the query was taken from there, are shown and paid here like others:
    that is the same for all policies.
    """
    evidence = tuple(
        Evidence(str(place["path"]), int(place.get("line_start") or 0), int(place.get("line_end") or 0))
        for place in query.facts.get("relevant", ())
    )
    if not evidence:
        raise BenchmarkError(f"query {query.id}: nothing is relevant for it")
    kind, language = str(query.facts.get("kind", "")), str(query.facts.get("lang", "en"))
    return Question(query.id, kind, query.text, "", "Str", language=language, evidence=evidence)


def measure(one: Set, profile: str) -> Run:
    """Ask all policies all questions of a set; return the run, see ``benchmark.study.budgets``."""
    with Session(one.corpus, profile) as session, tempfile.TemporaryDirectory(prefix="searchsvc-cut-") as cut:
        with session.service.pinned() as pinned:
            paths = [row.path for _, catalog in pinned.named_catalogs() for row in catalog.notes().values()]
        corpus = read_corpus(one.corpus, paths)
        ranked = Ranked(session.service, corpus)
        policies: dict[str, Policy] = {**Grep(corpus).policies(), **ranked.policies()}
        if not session.service.slots:
            rows = [_row(question, corpus, policies, ranked) for question in one.questions]
        else:
            windows = Windows(corpus, Path(cut))
            with Session(Path(cut), profile) as other:
                policies["windows"] = windows.policy(other)
                rows = [_row(question, corpus, policies, ranked) for question in one.questions]
    return {
        "name": one.name,
        "profile": profile,
        "budgets": list(BUDGETS),
        "cap": CAP,
        "notes": len(corpus.notes),
        "tokens": sum(cost("\n".join(note.lines)) for note in corpus.notes.values()),
        "grep": best_grep(rows),
        "policies": list(rows[0]["policies"]),
        "questions": rows,
    }


def _row(question: Question, corpus: Corpus, policies: dict[str, Policy], ranked: Ranked) -> dict[str, Any]:
    say(f"question {question.id}")
    asked, units = corpus.asked(question), evidence_units(question, corpus)
    found = {name: figures(trace(policy(asked), units)) for name, policy in policies.items()}
    found["reply"] = figures(ranked.reply(asked, units))
    found["reply+more"] = figures(ranked.reply(asked, units, more=True))
    found["sequential"] = figures(trace(sequential(corpus)(asked), units))
    by_seed = [figures(trace(by_chance(corpus, seed)(asked), units)) for seed in SEEDS]
    found["random"] = average(by_seed)
    found["oracle"] = figures(oracle(corpus, units))
    return {
        "id": question.id,
        "kind": question.kind,
        "tags": list(question.tags),
        "language": question.language,
        "cluster": question.cluster,
        "answerable": question.is_answerable,
        "units": len(units),
        "policies": found,
    }


def _read_runs(file: Path) -> dict[str, Run]:
    """Return the runs of an earlier ``--out`` by the name of their set."""
    try:
        return {run["name"]: run for run in json.loads(file.read_text(encoding="utf-8"))["runs"]}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BenchmarkError(f"{file}: not an --out file of this command ({error})") from error


def _changes(run: Run, old: Run) -> str:
    """Return new minus old, by the questions that both have."""
    before = {row["id"]: row for row in answerable(old["questions"])}
    pairs = [(row, before[row["id"]]) for row in answerable(run["questions"]) if row["id"] in before]
    clusters = [row["cluster"] for row, _ in pairs]

    def line(name: str) -> list[str]:
        values = [
            new["policies"][name]["recall"][MAIN] - earlier["policies"][name]["recall"][MAIN]
            for new, earlier in pairs
        ]
        return [name, str(len(pairs)), estimate(values, clusters).text]

    names = [name for name in run["policies"] if name in old["policies"]]
    return markdown(["policy", "questions", "new minus old"], map(line, names))


if __name__ == "__main__":
    import sys

    sys.exit(main())
