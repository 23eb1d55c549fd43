"""An agent with a model, with and without searchsvc: ``python -m benchmark.study.llm --help``.

Both arms get the same question, system prompt, file tools and caps; one of them gets the tools of a real
``searchsvc serve`` as well, with the server's instructions. The parts, each to be read alone: ``file_tools``
and ``tool_box`` (what can be called), ``prompt`` (what is said), ``chat`` (one request), ``agent`` (one
attempt), ``record`` (what is kept), ``replay``, ``scoring_answers``, ``arms`` (every figure).
"""

import argparse
import json
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from benchmark.core import say
from benchmark.errors import BenchmarkError, Parser, run_command
from benchmark.study.agent import Attempt, Setup
from benchmark.study.arms import results, table
from benchmark.study.attempts import Prices
from benchmark.study.chat import HttpChat, checked_address, read_key
from benchmark.study.prompt import Caps
from benchmark.study.questions import Question, read_questions
from benchmark.study.record import (
    QUESTIONS,
    RESULTS,
    Key,
    Records,
    begin,
    open_recorder,
    read_records,
    read_run,
    write_json,
)
from benchmark.study.replay import Replies, differences, of_attempt
from benchmark.study.tool_box import ARMS, ToolBox, open_boxes
from searchsvc.errors import SearchError

_MOST_DIFFERENCES = 5
"""Diffs that are printed; the others are counted."""
_FACTS = ("tools", "instructions")
"""Of an arm, as the record has them."""
_EPILOG = """\
FILE.jsonl has one question a line: id, question, answer, answer_format (Str, Int, Float, List, None), and
where known kind, tags, scope, documents, evidence ([{path, line_start, line_end}]). The key is read from
SEARCHSVC_STUDY_KEY or OPENAI_API_KEY. The same command goes on with a run that was stopped.

  ... replay DIR     serve the recorded replies, run the tools for real; fails when a result has changed
  ... rescore DIR    every figure again, from the records alone

example:
  python -m benchmark.study.llm --corpus benchmark/vault/notes --questions benchmark/vault/questions.jsonl \\
      --endpoint http://127.0.0.1:8080/v1 --model NAME --out study-1 --repeats 3
"""


class ResultsChanged(SearchError):
    """A run that was made again is not the recorded one."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    command = {"replay": _replay, "rescore": _rescore}.get(given[0]) if given else None
    return run_command(command, given[1:]) if command else run_command(_run, given)


def _run(arguments: Sequence[str] | None) -> None:
    given = _parser().parse_args(arguments)
    key, settings = read_key(), _settings(given)
    if given.retries < 0:
        raise BenchmarkError("--retries is a number from 0")
    if not given.corpus.is_dir():
        raise BenchmarkError(f"no corpus folder at {given.corpus}")
    if given.out.resolve().is_relative_to(given.corpus.resolve()):
        raise BenchmarkError("--out lies inside the corpus; give another folder")
    questions = _drawn(read_questions(given.questions), given.limit, given.seed)
    begin(given.out, settings, given.corpus, questions)
    with open_recorder(given.out, key) as recorder:
        records = read_records(given.out)
        plan = [
            task for task in _plan(questions, given.repeats, given.seed) if task[1] not in records.attempts
        ]
        total = len(questions) * given.repeats * len(ARMS)
        if plan:
            with (
                closing(HttpChat(given.endpoint, key, retries=given.retries)) as chat,
                open_boxes(given.corpus, given.searchsvc_model, given.toolsets) as boxes,
            ):
                for arm, box in boxes.items():
                    recorder.write("arm", arm=arm, **_facts(box))
                try:
                    for done, (question, name) in enumerate(plan, total - len(plan) + 1):
                        attempt = Attempt(
                            question, boxes[name.arm], chat, _setup(settings), recorder.log(name)
                        )
                        outcome = attempt.run(name.repeat, records.begun.get(name, 0) + 1)
                        say(f"{done} of {total}: {name.question}, {name.arm}: {outcome}")
                except (KeyboardInterrupt, SearchError):
                    say(f"stopped; the same command goes on, and `rescore {given.out}` shows what there is")
                    raise
    _finish(given.out, settings["prices"])


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python -m benchmark.study.llm",
        description="Ask an agent the same questions with file tools alone and with searchsvc as well.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add, caps = parser.add_argument, Caps()
    add("--corpus", type=Path, required=True, metavar="DIR", help="folder of Markdown notes")
    add("--questions", type=Path, required=True, metavar="FILE.jsonl", help="see below")
    add(
        "--endpoint", required=True, metavar="URL", help="that /chat/completions follows, often ending in /v1"
    )
    add("--model", required=True, metavar="NAME", help="as the endpoint names it")
    add("--out", type=Path, required=True, metavar="DIR", help="gets the record and results.json")
    add(
        "--repeats",
        type=int,
        default=1,
        metavar="N",
        help="attempts of each question in each arm (default 1)",
    )
    add("--limit", type=int, default=0, metavar="N", help="ask only N questions, drawn by the seed")
    add("--seed", type=int, default=1, help="of the order of arms, and sent with each request (default 1)")
    add("--temperature", type=float, default=0.0, metavar="T", help="(default 0)")
    add("--max-turns", type=int, default=caps.turns, metavar="N", help=f"requests (default {caps.turns})")
    add("--max-tool-chars", type=int, default=caps.tool_chars, metavar="N",
        help=f"characters of one tool result (default {caps.tool_chars})")  # fmt: skip
    add("--max-all-tool-chars", type=int, default=caps.all_tool_chars, metavar="N",
        help=f"characters of all tool results of an attempt (default {caps.all_tool_chars})")  # fmt: skip
    add("--max-total-tokens", type=int, default=caps.total_tokens, metavar="N",
        help=f"in and out, of an attempt (default {caps.total_tokens})")  # fmt: skip
    add("--max-reply-tokens", type=int, default=caps.reply_tokens, metavar="N",
        help=f"of one reply, sent as max_tokens (default {caps.reply_tokens})")  # fmt: skip
    add("--tools", choices=("native", "text"), default="native",
        help="'text' describes the tools in the prompt, for models without tool calling")  # fmt: skip
    add("--body", default="{}", metavar="JSON", help="more fields of each request; null takes one away: "
        '\'{"max_tokens": null, "max_completion_tokens": 4096}\'')  # fmt: skip
    add("--prices", type=Path, metavar="FILE", help="dollars for a million tokens: "
        '{"MODEL": {"in": 0.5, "out": 1.5, "cached": 0.1}}')  # fmt: skip
    add("--retries", type=int, default=5, metavar="N", help="after 429, 5xx, lost connections (default 5)")
    add("--searchsvc-model", default="", metavar="NAME", help="embedding model, or none (default: its own)")
    add("--toolsets", default="", metavar="SETS", help="of searchsvc, comma-separated (default: its own)")
    return parser


def _settings(given: argparse.Namespace) -> dict[str, Any]:
    """Return what a run depends on; there is no secret in it."""
    caps = Caps(
        given.max_turns,
        given.max_tool_chars,
        given.max_all_tool_chars,
        given.max_total_tokens,
        given.max_reply_tokens,
    )
    if min(*asdict(caps).values(), given.repeats) < 1 or given.limit < 0:
        raise BenchmarkError("caps and --repeats are numbers from 1, --limit is one from 0")
    try:
        body = json.loads(given.body)
    except ValueError as error:
        raise BenchmarkError(f"--body is not JSON ({error})") from error
    if not isinstance(body, dict) or {"messages", "tools", "stream"} & body.keys():
        raise BenchmarkError("--body is a JSON object without messages, tools and stream")
    return {
        "endpoint": checked_address(given.endpoint),
        "model": given.model,
        "repeats": given.repeats,
        "limit": given.limit,
        "seed": given.seed,
        "temperature": given.temperature,
        "caps": asdict(caps),
        "tools": given.tools,
        "body": body,
        "searchsvc_model": given.searchsvc_model,
        "toolsets": given.toolsets,
        "prices": read_prices(given.prices, given.model),
    }


def _setup(settings: Mapping[str, Any]) -> Setup:
    caps = Caps(**{cap.name: int(settings["caps"][cap.name]) for cap in fields(Caps)})
    return Setup(
        settings["model"],
        settings["temperature"],
        settings["seed"],
        caps,
        settings["tools"] == "text",
        settings["body"],
    )


def _drawn(questions: list[Question], limit: int, seed: int) -> list[Question]:
    """Return so many questions, drawn by the seed, in the order of the file; all of them for 0."""
    if not limit or limit >= len(questions):
        return questions
    places = sorted(random.Random(seed).sample(range(len(questions)), limit))
    return [questions[place] for place in places]


def _plan(questions: Sequence[Question], repeats: int, seed: int) -> Iterator[tuple[Question, Key]]:
    """Yield all attempts; which arm goes first is drawn for each question and repeat."""
    for repeat in range(repeats):
        for question in questions:
            arms = list(ARMS)
            random.Random(f"{seed}/{repeat}/{question.id}").shuffle(arms)
            yield from ((question, Key(question.id, arm, repeat)) for arm in arms)


def _facts(box: ToolBox) -> dict[str, Any]:
    return dict(zip(_FACTS, (box.tools, box.instructions), strict=True))


def read_prices(file: Path | None, model: str) -> dict[str, float] | None:
    """Return a model's prices from a table; ``BenchmarkError`` when it cannot be read or lacks the model."""
    if file is None:
        return None
    try:
        entry = json.loads(file.read_text(encoding="utf-8"))[model]
        prices = {name: float(entry[name]) for name in ("in", "out", "cached") if name in entry}
        if not {"in", "out"} <= prices.keys() or not all(0 <= price < 1e9 for price in prices.values()):
            raise ValueError("'in' and 'out' are needed, as numbers from 0")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BenchmarkError(
            f"{file} has no prices of {model!r} ({type(error).__name__}: {error}); expected "
            '{"MODEL": {"in": 0.5, "out": 1.5, "cached": 0.1}}'
        ) from error
    return prices


def _rescore(arguments: Sequence[str] | None) -> None:
    parser = Parser(prog="... rescore", description="Compute every figure of a run from its records alone.")
    parser.add_argument("run", type=Path, metavar="DIR", help="folder of the run")
    parser.add_argument("--prices", type=Path, metavar="FILE", help="other prices than those of the run")
    given = parser.parse_args(arguments)
    settings = read_run(given.run)["settings"]
    _finish(given.run, read_prices(given.prices, settings["model"]) or settings["prices"])


def _finish(folder: Path, prices: Prices | None) -> None:
    found = results(read_run(folder), _asked(folder), read_records(folder), prices)
    write_json(folder / RESULTS, found)
    print(table(found))


def _asked(folder: Path) -> list[Question]:
    return read_questions(folder / QUESTIONS)


def _replay(arguments: Sequence[str] | None) -> None:
    parser = Parser(
        prog="... replay",
        description="Make a run again with the recorded replies; fail when a tool's result has changed.",
    )
    parser.add_argument("run", type=Path, metavar="DIR", help="folder of the run")
    parser.add_argument("--corpus", type=Path, metavar="DIR", help="where the corpus is now")
    given = parser.parse_args(arguments)
    run, records = read_run(given.run), read_records(given.run)
    recorded = Path(run["corpus"]["path"])
    corpus = given.corpus or recorded
    settings = run["settings"]
    with open_boxes(corpus, settings["searchsvc_model"], settings["toolsets"]) as boxes:
        found, compared = _compare(records, boxes, _asked(given.run), _setup(settings), (recorded, corpus))
    for difference in found[:_MOST_DIFFERENCES]:
        print(difference, end="\n\n")
    counts = f"{len(records.attempts)} attempts, {compared} tool results"
    if found:
        raise ResultsChanged(f"{len(found)} differences from the record in {counts}")
    print(f"{counts}: all as recorded")


def _compare(
    records: Records,
    boxes: Mapping[str, ToolBox],
    questions: Sequence[Question],
    setup: Setup,
    corpora: tuple[Path, Path],
) -> tuple[list[str], int]:
    """Return all differences, and how many results of tools were compared."""
    found: list[str] = []
    compared = 0
    for arm, box in boxes.items():
        if arm in records.arms:
            before, now = (
                {name: facts[name] for name in _FACTS} for facts in (records.arms[arm], _facts(box))
            )
            old, new = (json.dumps(facts, indent=1, ensure_ascii=False) for facts in (before, now))
            found += differences(f"tools and instructions of {arm}", old, new, corpora)
    by_id = {question.id: question for question in questions}
    for key, events in records.attempts.items():
        comparison = of_attempt(f"{key.question}, {key.arm}, repeat {key.repeat}", events, corpora)
        Attempt(by_id[key.question], boxes[key.arm], Replies(events), setup, comparison.log).run(
            key.repeat, 1
        )
        found += comparison.differences
        compared += comparison.compared
    return found, compared


if __name__ == "__main__":
    sys.exit(main())
