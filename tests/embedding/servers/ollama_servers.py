"""Servers that speak Ollama's API: programs by others, from PyPI.

Ollama itself is on no package index. These are what people put in its place, and what they send differs
from each other as from the original. They come with frameworks that the product does not need, so the
variable ``SEARCHSVC_TEST_OLLAMA`` names the interpreter of an environment that has them. Run as a script,
with that interpreter, it serves until its standard input ends: ``ollama_servers.py NAME PORT FOLDER``.
"""

import importlib.metadata
import sys
import types
from pathlib import Path
from typing import Any

import children
from llama_server import DIMENSION, MODEL

VARIABLE = "SEARCHSVC_TEST_OLLAMA"
MAX_TOKENS = 256
BATCHING = "ollama-openai-proxy"
"""Passes on the texts of a request together; its digest is made of the model's name."""
SINGLE = "ollama-proxy-plus"
"""Passes on one text at a time; wants the name of the server behind it before the model's."""
HERD = "ollama-herd"
"""The part of it that runs a model itself, by fastembed; it lists no models."""
MODULES = {BATCHING: "routers", SINGLE: "ollama_proxy", HERD: "fleet_manager", "fastembed": "fastembed"}
"""What an interpreter must have, by the name of its package."""


def start(python: str, name: str, behind: str, folder: Path, log: Path) -> children.Child:
    """Start one of them with another interpreter.

    Two ask the OpenAI API at ``behind``; the third runs the model whose ONNX files are in ``folder``.
    """
    settings = {
        "OPENAI_API_BASE_URL": behind,
        "OPENAI_API_KEY": "none",
        "MAX_RETRIES": "1",  # tries, in fact
        "EXTRA_MODELS": name_at(name, MODEL),
        "PROVIDERS_LOCAL_BASE_URL": behind,
        "PROVIDERS_LOCAL_API_KEY": "none",
        "PYTHONHASHSEED": "0",  # one of them makes digests with hash()
        "HOME": str(log.parent),  # one of them makes a folder there
        "HF_HUB_OFFLINE": "1",
    }
    return children.start(
        lambda port: children.script("ollama_servers.py", name, str(port), str(folder), python=python),
        log,
        health="/openapi.json",
        environment=settings,
    )


def name_at(server: str, model: str) -> str:
    """Return what a model is called at one of them."""
    return f"local/{model}" if server == SINGLE else model


def main() -> None:
    children.end_with_parent()
    import uvicorn

    name, port, folder = sys.argv[1:]
    makers = {BATCHING: _batching, SINGLE: _single, HERD: _herd}
    uvicorn.run(makers[name](folder), host=children.HOST, port=int(port), log_level="warning")


def _batching(folder: str) -> Any:
    # Its wheel holds the modules at the top, but they import each other from a package `src`.
    package = types.ModuleType("src")
    package.__path__ = [str(importlib.metadata.distribution(BATCHING).locate_file(""))]
    sys.modules["src"] = package
    from src.main import app

    return app


def _single(folder: str) -> Any:
    from ollama_proxy.server import app

    return app


def _herd(folder: str) -> Any:
    """Return its node for embedding alone, as its router reaches it, with our model beside its own."""
    from fastapi import FastAPI
    from fastembed import TextEmbedding
    from fastembed.common.model_description import ModelSource, PoolingType
    from fleet_manager.node import text_embedding_models, text_embedding_server

    class Local(TextEmbedding):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, specific_model_path=folder, **options)

    source = ModelSource(hf="none/none")
    Local.add_custom_model(MODEL, PoolingType.MEAN, True, source, DIMENSION, model_file="model.onnx")
    sys.modules["fastembed"].TextEmbedding = Local
    text_embedding_models.TEXT_EMBEDDING_MODELS[MODEL] = {"fastembed_name": MODEL, "max_tokens": MAX_TOKENS}
    app = FastAPI()
    app.include_router(text_embedding_server.router, prefix="/api")
    return app


if __name__ == "__main__":
    main()
