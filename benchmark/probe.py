"""What a fresh process does: run by benchmark.processes as ``python -m benchmark.probe``.

``first``: one lexical answer. ``memory``: 20 lexical and 20 vector answers, then the memory held and the most
that was ever held.
Prints one JSON object.
"""

import json
import sys
from pathlib import Path


def main() -> None:
    """Do what the arguments say: action, corpus, data folder, queries as a JSON list."""
    action, corpus, data_dir, queries = sys.argv[1:5]
    if action == "first":
        first(Path(corpus), Path(data_dir), json.loads(queries)[0])
    else:
        memory(Path(corpus), Path(data_dir), json.loads(queries))


def first(corpus: Path, data_dir: Path, query: str) -> None:
    """Answer one question by words."""
    from searchsvc.config import load
    from searchsvc.service import Service

    arguments = {"roots": [corpus], "data_dir": data_dir, "model": "none", "instant_model": "none"}
    service = Service(load(arguments, config_file=data_dir / "config.yaml", environment={}))
    print(json.dumps({"hits": len(service.search(query, mode="lexical").hits)}))


def memory(corpus: Path, data_dir: Path, queries: list[str]) -> None:
    """Answer by words, then by vectors, and say how much memory is held, in MB (1e6 bytes)."""
    from benchmark.inside import open_stages

    stages = open_stages(corpus, data_dir)
    for query in queries:
        stages.service.search(query, mode="lexical")
    for query in queries:
        stages.ask(query, "vector")
    import psutil

    from benchmark.memory import peak_rss_mb

    held = psutil.Process().memory_info()
    mapped = getattr(held, "shared", 0)
    figures = {"rss_mb": held.rss / 1e6, "of_mapped_files_mb": mapped / 1e6, "peak_mb": peak_rss_mb()}
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
