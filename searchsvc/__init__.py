"""Semantic and hybrid search over Markdown sections, offline.

A folder of notes or documentation is parsed into its heading sections. Each section is found by its words
(BM25F), by its meaning (embeddings of a small local model) and by the links that lead to it, fused into
one ranking; an answer packs the best of them into a token budget.

    from searchsvc import Service, load

    service = Service(load({"roots": "./docs"}))
    service.index()                                   # new and changed notes; quick when nothing changed
    service.embed()                                   # missing vectors
    ranking = service.search("how are keys rotated?", top_k=5)
    for hit in ranking.hits:
        print(hit.id, hit.section.line_start, hit.score, hit.why)
    print(service.semantic_search("how are keys rotated?", max_tokens=1000).text)

Without an index, ``tree``, ``section``, ``read``, ``index_file``, ``index_folder`` and ``index_text`` read
files as they are now.

``load`` merges settings from the config file, the environment and its argument into a ``Config``; a
``Service`` answers. What it returns (``Ranking``, ``Hit``, ``Answer``, ``Status``) are plain dataclasses,
documented field by field in ``searchsvc.items`` and ``searchsvc.status_items``. All errors are
``SearchError``; the tree is drawn in ``searchsvc.errors``. The same service speaks MCP (``searchsvc serve``)
and is on the command line (``searchsvc --help``). ARCHITECTURE.md, beside the package in its repository,
shows how it is built.

Importing this package imports nothing else: names load when they are first used.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "Answer": "items",
    "Config": "config",
    "FileIndex": "items",
    "Hit": "items",
    "Ranking": "items",
    "Reply": "items",
    "SearchError": "errors",
    "Section": "items",
    "Service": "service",
    "Status": "status_items",
    "Tree": "items",
    "index_file": "functions",
    "index_folder": "functions",
    "index_text": "functions",
    "load": "config",
    "read": "functions",
    "section": "functions",
    "tree": "functions",
}

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    """Load a public name from its module."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    """List the public names."""
    return __all__
