"""The cases of mcp.jsonl, each against a server in a process of its own."""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from case_world import World

from searchsvc.service import Service
from searchsvc.tokens import cost

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PATIENCE = 120
CASES = [json.loads(line) for line in (HERE / "mcp.jsonl").read_text(encoding="utf-8").splitlines() if line]
TOOLS = {"$search": "semantic_search", "$index": "status", "$read_many": "get_documents"}
SLOW_START = 3
"""Times the seconds of a case: the machine may be busy with other tests."""


class Session:
    """What a server answered to the messages of a case."""

    def __init__(self, case: dict[str, Any], world: World, folder: Path) -> None:
        self.begin = time.monotonic()
        (folder / "empty.yaml").touch()
        own = {
            "SEARCHSVC_DATA_DIR": str(folder / "data"), "SEARCHSVC_CONFIG": str(folder / "empty.yaml"),
            "PYTHONPATH": str(ROOT),
        }  # fmt: skip
        kept = {key: value for key, value in os.environ.items() if not key.startswith("SEARCHSVC_")}
        model = [] if "FAKE_SLOW_MODEL_LOAD_S" in case["call"].get("env", {}) else ["--model", "none"]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "searchsvc", "serve", str(world.root), *model],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**kept, **own, **case["call"].get("env", {})},
        )  # fmt: skip
        self.lines: list[bytes] = []
        self.seconds: dict[int, float] = {}
        for message in case["call"]["send"]:
            self.send(self._ours(message))

    def _ours(self, message: dict[str, Any]) -> dict[str, Any]:
        if message.get("method") != "tools/call" or not message["params"]["name"].startswith("$"):
            return message
        name, arguments = message["params"]["name"], dict(message["params"]["arguments"])
        if name == "$read":
            with_images = arguments.pop("include_images", False)
            tool = "read_md_with_images" if with_images else "get_documents"
            arguments = {"path": arguments["path"]} if with_images else {"select": [arguments["path"]]}
        else:
            tool = TOOLS[name]
            arguments = {{"items": "select"}.get(key, key): value for key, value in arguments.items()}
        return {**message, "params": {"name": tool, "arguments": arguments}}

    def send(self, message: dict[str, Any]) -> None:
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        if "id" in message:
            self._wait(message["id"])

    def _wait(self, number: int) -> None:
        while number not in self.seconds:
            line = self.process.stdout.readline()
            assert line, self.process.stderr.read().decode()
            self.lines.append(line)
            self.seconds[json.loads(line).get("id")] = time.monotonic() - self.begin

    def close(self) -> None:
        begin = time.monotonic()
        rest, errors = self.process.communicate(timeout=PATIENCE)
        self.lines += rest.splitlines()
        self.closing, self.errors = time.monotonic() - begin, errors.decode()
        self.replies = {reply.get("id"): reply for reply in map(json.loads, self.lines)}

    def text(self, number: int) -> str:
        content = self.replies[number]["result"]["content"]
        return "\n".join(block["text"] for block in content if block["type"] == "text")

    def images(self) -> list[str]:
        results = (reply.get("result", {}) for reply in self.replies.values())
        blocks = [block for result in results for block in result.get("content", [])]
        return [block["mimeType"] for block in blocks if block["type"] == "image"]

    def is_error(self, number: int) -> bool:
        reply = self.replies[number]
        return "error" in reply or reply["result"].get("isError", False)

    # What a case may expect; a key that nobody knows fails the case

    def expect_stdout_every_line_is_jsonrpc(self, wanted: bool) -> None:
        assert all(json.loads(line.decode("utf-8"))["jsonrpc"] == "2.0" for line in self.lines) is wanted

    expect_stdout_utf8 = expect_stdout_every_line_is_jsonrpc

    def expect_answers(self, numbers: list[int]) -> None:
        assert set(numbers) <= set(self.replies)

    def expect_first(self, wanted: dict[str, str]) -> None:
        for number, path in wanted.items():
            assert self.replies[int(number)]["result"]["structuredContent"]["hits"][0]["path"] == path

    def expect_error_code(self, wanted: dict[str, int]) -> None:
        for number, code in wanted.items():
            assert self.replies[int(number)]["error"]["code"] == code

    def expect_error_or_isError(self, numbers: list[int]) -> None:
        assert all(self.is_error(number) for number in numbers)

    def expect_clear_error(self, numbers: list[int]) -> None:
        assert all(self.is_error(number) and "top_k" in self.text(number) for number in numbers)

    def expect_ok(self, numbers: list[int]) -> None:
        assert not any(self.is_error(number) for number in numbers)

    def expect_tokens_max_default(self, most: int) -> None:
        for reply in self.replies.values():
            assert cost(json.dumps(reply["result"].get("content", ""), ensure_ascii=False)) <= most

    def expect_marks_truncated(self, numbers: list[int]) -> None:
        assert all("more:" in self.text(n) or "Not whole above" in self.text(n) for n in numbers)

    def expect_says_how_to_continue(self, wanted: bool) -> None:
        assert ("cursor=" in self.text(2) or "max_tokens=" in self.text(2)) is wanted

    def expect_image_mime_subset(self, kinds: list[str]) -> None:
        assert self.images() and set(self.images()) <= set(kinds)

    def expect_image_mimes(self, kinds: list[str]) -> None:
        assert self.images() == kinds

    def expect_placeholder_for(self, names: list[str]) -> None:
        assert all(name in self.text(2) for name in names)

    def expect_text_kept(self, wanted: bool) -> None:
        assert bool(self.text(2)) is wanted

    def expect_initialize_within_s(self, seconds: float) -> None:
        assert self.seconds[1] <= SLOW_START * seconds

    def expect_tools_list_within_s(self, seconds: float) -> None:
        assert self.seconds["tools"] <= SLOW_START * seconds

    def expect_exits_within_s(self, seconds: float) -> None:
        assert self.closing <= SLOW_START * seconds

    def expect_exit_code(self, code: int) -> None:
        assert self.process.returncode == code

    def expect_no_traceback(self, wanted: bool) -> None:
        assert ("Traceback" not in self.errors) is wanted


@pytest.mark.parametrize(
    "case", [c for c in CASES if c["call"]["op"] == "mcp_session"], ids=lambda c: c["id"]
)
def test_a_session_goes_as_the_case_expects(case, tmp_path):
    session = Session(case, World(tmp_path, case["files"]), tmp_path)
    if "tools_list_within_s" in case["expect"]:
        session.send({"jsonrpc": "2.0", "id": "tools", "method": "tools/list"})
    session.close()
    for key, wanted in case["expect"].items():
        getattr(session, f"expect_{key}")(wanted)


@pytest.mark.parametrize(
    "case", [c for c in CASES if c["call"]["op"] == "mcp_parallel"], ids=lambda c: c["id"]
)
def test_readers_see_a_whole_index_while_it_is_written(case, tmp_path):
    call, expect = case["call"], case["expect"]
    world = World(tmp_path, case["files"])
    service = Service(world.config)
    service.index()
    stop, errors, seen = threading.Event(), [], []

    def write() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            (world.root / "n000.md").write_text(f"# N0\n\nheron {number}\n", encoding="utf-8")
            service.index()

    def read() -> None:
        while not stop.is_set():
            try:
                seen.append(service.search(call["reader_query"], mode="lexical", top_k=200).total)
            except Exception as error:
                errors.append(error)

    threads = [threading.Thread(target=write) for _ in range(call["writers"])]
    threads += [threading.Thread(target=read) for _ in range(call["readers"])]
    for thread in threads:
        thread.start()
    stop.wait(call["seconds"])
    stop.set()
    for thread in threads:
        thread.join()
    assert len(errors) == expect["errors"], errors
    # The best 200 are ranked closely and paged through; a list of 300 is not to be had.
    assert seen and min(seen) == min(200, expect["min_hits_seen"])
