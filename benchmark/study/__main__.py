"""The A/B study: ``python -m benchmark ab evidence | llm | replay | rescore | mmlongbench``."""

import sys
from collections.abc import Sequence
from importlib import import_module

PARTS = {
    "evidence": (
        "benchmark.study.deterministic",
        (),
        "scripted policies without a model: evidence by budget",
    ),
    "llm": ("benchmark.study.llm", (), "an agent with a model, with and without searchsvc"),
    "replay": ("benchmark.study.llm", ("replay",), "a recorded run again: replies recorded, tools for real"),
    "rescore": ("benchmark.study.llm", ("rescore",), "every figure again, from the records alone"),
    "mmlongbench": ("benchmark.study.mmlongbench", (), "a corpus and questions of MMLongBench-Doc's files"),
}


def main(arguments: Sequence[str]) -> int:
    """Run a part of the study and return its exit code; without one, list them."""
    name = arguments[0] if arguments else ""
    if name not in PARTS:
        known = "\n".join(f"  {part:11}  {about}" for part, (_, _, about) in PARTS.items())
        stream = sys.stdout if name in ("-h", "--help") else sys.stderr
        print(f"python -m benchmark ab PART [OPTIONS]\n\n{known}\n\nPART --help tells more.", file=stream)
        return 0 if stream is sys.stdout else 2
    module, first, _ = PARTS[name]
    code: int = import_module(module).main([*first, *arguments[1:]])
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
