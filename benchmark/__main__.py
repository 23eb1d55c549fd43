"""All measurements under one name: ``python -m benchmark COMMAND --help``."""

import sys
from collections.abc import Sequence
from importlib import import_module

COMMANDS = {
    "run": ("benchmark.run", "one corpus and query file: results and latency, for any scorer"),
    "quality": ("benchmark.quality", "retrieval quality on sets of queries with known answers"),
    "speed": ("benchmark.speed", "speed, memory and size against other engines"),
    "tokens": ("benchmark.tokens", "what each tool costs against reading whole files"),
    "reading": ("benchmark.reading", "economy and speed of outlines and sections"),
    "embedding": ("benchmark.embedding", "making vectors: the batch job against a bare loop"),
    "served": ("benchmark.served", "the client of a served model against bare requests"),
    "importing": ("benchmark.importing", "PDF and EPUB: CPU a page, and a large job"),
    "report": ("benchmark.pages", "a page with tables and pictures of figures that others wrote"),
    "ab": ("benchmark.study", "the A/B study: evidence by budget (no model), or an agent with a model"),
}


def main(arguments: Sequence[str]) -> int:
    """Run a command and return its exit code; without one, list them."""
    name = arguments[0] if arguments else ""
    if name not in COMMANDS:
        width = max(map(len, COMMANDS))
        known = "\n".join(f"  {command:{width}}  {about}" for command, (_, about) in COMMANDS.items())
        stream = sys.stdout if name in ("-h", "--help") else sys.stderr
        print(f"python -m benchmark COMMAND [OPTIONS]\n\n{known}\n\nCOMMAND --help tells more.", file=stream)
        return 0 if stream is sys.stdout else 2
    command = import_module(f"{COMMANDS[name][0]}.__main__" if name == "ab" else COMMANDS[name][0])
    code: int = command.main(arguments[1:])
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
