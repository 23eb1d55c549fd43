"""The whole study against a scripted chat server: real files, a real child process, real records."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from benchmark.study import record
from benchmark.study.llm import main
from benchmark.study.replay import normalised
from benchmark.study.tool_box import ARMS, BOTH, FILES
from tests.notes import write_notes

KEY = "sk-key-of-the-test"
PATIENCE = 120
ROOT = Path(__file__).parents[2]
QUESTIONS = [
    {
        "id": "keys", "kind": "paraphrase", "tags": ["ops"], "answer": "90", "answer_format": "Int",
        "question": "After how many days are credentials renewed?",
        "evidence": [{"path": "ops/runbook.md", "line_start": 12, "line_end": 12}],
    },
    {
        "id": "water", "kind": "literal", "answer": "twice a week", "answer_format": "Str",
        "question": "How often are tomatoes watered?",
        "evidence": [{"path": "garden/tomatoes.md", "line_start": 11, "line_end": 11}],
    },
    {"id": "none", "kind": "unanswerable", "answer": "Not answerable", "answer_format": "None",
     "question": "How old is the gardener?"},
]  # fmt: skip


def answer(status, text="", *citations):
    return "answer", {"status": status, "answer": text, "citations": list(citations)}


CITED = {"path": "ops/runbook.md", "line_start": 12, "line_end": 12}
SCRIPT = {
    ("keys", FILES): [("grep", {"pattern": "renewed"}), answer("answered", "90", CITED)],
    ("keys", BOTH): [
        ("semantic_search", {"query": "how do we renew expired passwords?", "max_tokens": 300}),
        ("status", {}),
        answer("answered", "90 days", CITED),
    ],
    ("water", FILES): [("read_file", {"path": "garden/tomatoes.md", "line_end": 8}), None],
    ("water", BOTH): [
        ("md_section", {"path": "garden/tomatoes.md#watering"}),
        answer("answered", "twice a week", {"path": "./garden/tomatoes.md#watering", "line_start": 9}),
    ],
    ("none", FILES): [answer("answered", "forty")],
    ("none", BOTH): [("ls", {}), answer("not_answerable")],
}  # fmt: skip
"""What the model does in each arm; none for a failure of the endpoint."""


class ChatServer(ThreadingHTTPServer):
    """Follows ``SCRIPT``: native calls for one question, fenced JSON for the others."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), ChatHandler)
        self.asked = []
        self.stop_after = None
        """Requests after which the endpoint refuses the key."""
        self.may_answer = threading.Event()
        """Cleared while requests are to wait."""
        self.may_answer.set()

    def handle_error(self, request, client_address):
        """Say nothing: a client that was interrupted does not wait for its reply."""

    def reply(self, body):
        text = body["messages"][1]["content"]
        question = next(q["id"] for q in QUESTIONS if q["question"] in text)
        arm = BOTH if any(t["function"]["name"] == "semantic_search" for t in body["tools"]) else FILES
        turn = sum(message["role"] == "assistant" for message in body["messages"])
        step = SCRIPT[question, arm][turn]
        if step is None:
            return 500, {"error": "broken"}
        name, arguments = step
        block = json.dumps({"name": name, "arguments": arguments})
        message = {"role": "assistant", "content": f"```json\n{block}\n```"}
        if question == "keys":
            function = {"name": name, "arguments": json.dumps(arguments)}
            calls = [{"id": f"c{turn}", "type": "function", "function": function}]
            message = {"role": "assistant", "content": None, "tool_calls": calls}
        usage = {"prompt_tokens": 1000, "completion_tokens": 10}
        usage["prompt_tokens_details"] = {"cached_tokens": 400}
        return 200, {"choices": [{"message": message}], "usage": usage}


class ChatHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(body)
        assert self.headers["Authorization"] == f"Bearer {KEY}"
        self.server.may_answer.wait(PATIENCE)
        stopped = self.server.stop_after is not None and len(self.server.asked) > self.server.stop_after
        status, answer = (401, {"error": f"bad key {KEY}"}) if stopped else self.server.reply(body)
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *arguments):
        pass


@pytest.fixture(scope="module")
def chat():
    server = ChatServer()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("SEARCHSVC_STUDY_KEY", KEY)


def arguments(folder, chat, *more):
    prices = folder / "prices.json"
    prices.write_text(json.dumps({"stub": {"in": 1, "out": 10, "cached": 0.5}}))
    (folder / "questions.jsonl").write_text("".join(f"{json.dumps(q)}\n" for q in QUESTIONS))
    return [
        "--corpus", str(folder / "notes"), "--questions", str(folder / "questions.jsonl"),
        "--endpoint", f"http://127.0.0.1:{chat.server_port}/v1", "--model", "stub",
        "--out", str(folder / "out"), "--prices", str(prices), "--retries", "0", "--repeats", "2", *more,
    ]  # fmt: skip


@pytest.fixture(scope="module")
def finished(tmp_path_factory, chat):
    """A finished run with the model that is in the package, and the requests that it made."""
    folder = tmp_path_factory.mktemp("study")
    write_notes(folder / "notes")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEARCHSVC_STUDY_KEY", KEY)
        chat.asked.clear()
        assert main(arguments(folder, chat)) == 0
    return folder, list(chat.asked)


@pytest.fixture
def run(finished, tmp_path):
    """A copy of the finished run that a test may spoil."""
    folder = tmp_path / "study"
    shutil.copytree(finished[0], folder)
    return folder


def results(folder):
    return json.loads((folder / "out" / "results.json").read_text(encoding="utf-8"))


def test_both_arms_get_the_same_words_and_file_tools_and_one_gets_the_server_as_it_is(finished):
    _, asked = finished
    files = next(body for body in asked if len(body["tools"]) == 4)
    both = next(body for body in asked if len(body["tools"]) > 4)
    prompts = [body["messages"][0]["content"] for body in (files, both)]
    assert prompts[1].startswith(prompts[0])
    assert prompts[1][len(prompts[0]) :].startswith("\n\nMarkdown notes, section by section.")
    assert both["tools"][:4] == files["tools"]
    served = {tool["function"]["name"] for tool in both["tools"][4:]}
    assert {"semantic_search", "md_section", "md_vault_index", "status"} <= served
    for name in ("model", "temperature", "max_tokens"):
        assert files[name] == both[name]


def test_the_order_of_arms_is_drawn(finished):
    starts = [
        json.loads(line) for line in (finished[0] / "out" / "records.jsonl").read_text().splitlines()
        if '"event": "start"' in line
    ]  # fmt: skip
    assert len(starts) == 12
    firsts = [start["arm"] for start in starts[::2]]
    assert set(firsts) == set(ARMS)
    assert all({a["arm"], b["arm"]} == set(ARMS) for a, b in zip(starts[::2], starts[1::2], strict=True))


def test_figures(finished):
    found = results(finished[0])
    assert found["complete"]
    files, both = (found["arms"][arm]["all"] for arm in ARMS)
    assert files["outcomes"] == {"answered": 4, "error": 2}
    assert both["outcomes"] == {"answered": 4, "not_answerable": 2}
    assert (files["score"], both["score"]) == (pytest.approx(1 / 3), 1)
    assert (files["precision"], files["recall"]) == (pytest.approx(1 / 3), 0.5)
    assert both["f1"] == 1
    assert (files["adoption"], both["adoption"]) == (None, pytest.approx(2 / 3))
    assert (files["errors"], both["errors"]) == (2, 0)
    assert both["calls"] == {"ls": 1 / 3, "md_section": 1 / 3, "semantic_search": 1 / 3, "status": 1 / 3}
    assert (both["tokens_in"], both["tokens_cached"]) == (pytest.approx(7000 / 3), pytest.approx(2800 / 3))
    cost = (600 * 1 + 400 * 0.5 + 10 * 10) / 1e6
    assert both["cost"] == pytest.approx(cost * 7 / 3)
    attempts = {(a["question"], a["arm"], a["repeat"]): a for a in found["attempts"]}
    keys = attempts["keys", BOTH, 1]
    assert (keys["evidence_recall"], keys["evidence_cited"], keys["citation_precision"]) == (1, 1, 1)
    water = attempts["water", FILES, 0]
    assert (water["outcome"], water["evidence_recall"], water["citation_precision"]) == ("error", 0, None)
    shown = attempts["water", BOTH, 0]
    assert (shown["evidence_recall"], shown["evidence_cited"], shown["citation_precision"]) == (1, 0, 0)
    assert attempts["none", BOTH, 0]["evidence_recall"] is None


def test_differences_are_paired_by_question(finished):
    found = results(finished[0])["differences"]
    score = found["all"]["score"]
    assert score["mean"] == pytest.approx(2 / 3)
    assert (score["count"], score["wins"], score["ties"], score["losses"]) == (3, 2, 1, 0)
    assert score["low"] <= score["mean"] <= score["high"]
    assert score["detectable"] > 0
    assert (found["all"]["turns"]["wins"], found["all"]["turns"]["losses"]) == (0, 2), "fewer turns are a win"
    assert set(found["kinds"]) == {"literal", "paraphrase", "unanswerable"}
    assert found["tags"]["ops"]["score"]["count"] == 1


def test_no_file_holds_the_key(finished):
    files = [file for file in (finished[0] / "out").rglob("*") if file.is_file()]
    assert len(files) > 1
    for file in files:
        assert KEY not in file.read_text(encoding="utf-8")


def test_replay_passes_on_the_same_notes_and_elsewhere(run, capsys):
    assert main(["replay", str(run / "out"), "--corpus", str(run / "notes")]) == 0
    assert "12 attempts, 12 tool results: all as recorded" in capsys.readouterr().out


def test_replay_fails_with_a_diff_when_a_note_was_changed(run, capsys):
    note = run / "notes" / "ops" / "runbook.md"
    note.write_text(note.read_text().replace("an hour later", "a day later"))
    assert main(["replay", str(run / "out"), "--corpus", str(run / "notes")]) == 1
    shown = capsys.readouterr()
    assert "keys, files, repeat 0: grep(" in shown.out
    assert (
        "-ops/runbook.md:12:Credentials are renewed every ninety days; the old ones stop working an hour"
        in shown.out
    )
    assert (
        "+ops/runbook.md:12:Credentials are renewed every ninety days; the old ones stop working a day"
        in shown.out
    )
    assert "semantic_search(" in shown.out
    assert "4 differences from the record" in shown.err


def test_replay_fails_when_the_tools_are_others(run, capsys):
    lines = (
        (run / "out" / "records.jsonl").read_text(encoding="utf-8").replace("Find sections", "Find things")
    )
    changed = lines.replace("Markdown notes, section by section", "Notes")
    assert changed != lines
    (run / "out" / "records.jsonl").write_text(changed, encoding="utf-8")
    assert main(["replay", str(run / "out"), "--corpus", str(run / "notes")]) == 1
    assert f"tools and instructions of {BOTH}" in capsys.readouterr().out


def test_rescore_gives_the_same_figures_from_the_records_alone(run, capsys):
    before = results(run)
    (run / "out" / "results.json").unlink()
    shutil.rmtree(run / "notes")
    (run / "questions.jsonl").unlink()
    assert main(["rescore", str(run / "out")]) == 0
    assert results(run) == before
    assert "| score | 0.333 | 1 |" in capsys.readouterr().out
    (run / "dear.json").write_text(json.dumps({"stub": {"in": 100, "out": 100}}))
    assert main(["rescore", str(run / "out"), "--prices", str(run / "dear.json")]) == 0
    assert results(run)["arms"][FILES]["all"]["cost"] > before["arms"][FILES]["all"]["cost"]


def test_a_run_that_was_stopped_goes_on_where_it_was(tmp_path, chat, capsys):
    write_notes(tmp_path / "notes")
    command = arguments(tmp_path, chat, "--searchsvc-model", "none", "--toolsets", "find,read,vault")
    chat.asked.clear()
    chat.stop_after = 5
    assert main(command) == 1
    shown = capsys.readouterr()
    assert "answered 401" in shown.err
    assert "goes on" in shown.err
    assert KEY not in shown.err + shown.out
    file = tmp_path / "out" / "records.jsonl"
    made = record.read_records(tmp_path / "out").attempts
    assert 0 < len(made) < 12
    with file.open("ab") as handle:
        handle.write(b'{"event": "rep')
    assert main(["rescore", str(tmp_path / "out")]) == 0
    assert not results(tmp_path)["complete"]
    chat.stop_after = None
    assert main(command) == 0
    again = record.read_records(tmp_path / "out")
    assert len(again.attempts) == 12
    assert {key: again.attempts[key] for key in made} == made
    assert sorted(again.begun.values()) == [1] * 11 + [2]
    assert results(tmp_path)["complete"]
    asked = len(chat.asked)
    assert main(command) == 0
    assert len(chat.asked) == asked, "nothing was left to do"


@pytest.mark.skipif(sys.platform == "win32", reason="another process cannot be interrupted there")
def test_ctrl_c_ends_in_one_line_with_a_good_record(tmp_path, chat):
    write_notes(tmp_path / "notes")
    command = arguments(tmp_path, chat, "--searchsvc-model", "none")
    environment = os.environ | {"PYTHONPATH": str(ROOT), "SEARCHSVC_STUDY_KEY": KEY}
    chat.may_answer.clear()
    asked = len(chat.asked)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "encoding": "utf-8"}
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmark.study.llm", *command], env=environment, cwd=ROOT, **pipes
    )
    try:
        end = time.monotonic() + PATIENCE
        while len(chat.asked) == asked and time.monotonic() < end and process.poll() is None:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
        chat.may_answer.set()
    assert (process.returncode, out) == (130, ""), errors
    assert "Traceback" not in errors
    assert errors.endswith("error: interrupted\n")
    records = record.read_records(tmp_path / "out")
    assert records.attempts == {}
    assert list(records.begun.values()) == [1]


def test_another_run_in_the_same_folder_is_refused(run, chat, capsys):
    shutil.copytree(run / "notes", run / "notes2")
    command = arguments(run, chat)
    assert main([*command, "--seed", "5"]) == 2
    assert "settings seed is 1 there and 5 here" in capsys.readouterr().err
    (run / "notes" / "new.md").write_text("# New\n")
    assert main(command) == 2
    assert "corpus files is 6 there and 7 here" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (["--corpus", "gone"], "no corpus folder"),
        (["--questions", "gone"], "no question file"),
        (["--endpoint", "http://a:b@h/v1"], "takes no user"),
        (["--max-turns", "0"], "numbers from 1"),
        (["--body", "{"], "--body is not JSON"),
        (["--body", '{"tools": []}'], "without messages, tools"),
        (["--repeats", "x"], "invalid int"),
        (["--prices", "gone.json"], "has no prices of 'stub'"),
        (["--retries", "-1"], "number from 0"),
    ],
)
def test_wrong_arguments_are_refused_in_one_line(tmp_path, chat, capsys, more, reason):
    write_notes(tmp_path / "notes")
    try:
        code = main(arguments(tmp_path, chat, *more))
    except SystemExit as end:
        code = end.code
    assert code == 2
    error = capsys.readouterr().err
    assert reason in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_folder_that_holds_no_run_is_refused(tmp_path, capsys):
    for command in ("replay", "rescore"):
        assert main([command, str(tmp_path)]) == 2
        assert "holds no run" in capsys.readouterr().err


def test_what_is_replaced_before_a_comparison(tmp_path):
    own = "=== took 12 ms at 2024-01-02T03:04:05Z, generation 7, 1.7 MB"
    assert normalised(own, []) == "=== took <duration> at <time>, generation <n>, <size>"
    note = "light every 5 s, generation 7"
    assert normalised(note, []) == note
    assert normalised(note, [], is_own=True) == "light every <duration>, generation <n>"
    assert normalised(f"{tmp_path}/a.md", [tmp_path]) == "<corpus>/a.md"
