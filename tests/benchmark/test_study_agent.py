"""One attempt: its caps, and what a model is told when it goes wrong. No server, no network."""

import json

import pytest

from benchmark.study.agent import Attempt, Setup
from benchmark.study.chat import ChatFault, Reply
from benchmark.study.file_tools import FileTools
from benchmark.study.prompt import LAST_TURN, NUDGE, USED_UP, Caps
from benchmark.study.questions import Question
from benchmark.study.tool_box import FILES, ToolBox

QUESTION = Question("q1", "literal", "How many herons?", "2", "Int", "document", ("a.md",))


class Script:
    """Replies with messages one after the other, the last one for ever, and keeps the requests."""

    def __init__(self, *messages, usage=(100, 10)):
        self.messages, self.usage, self.asked = list(messages), usage, []

    def complete(self, body):
        self.asked.append(json.loads(json.dumps(body)))
        message = self.messages.pop(0) if len(self.messages) > 1 else self.messages[0]
        if isinstance(message, Exception):
            raise message
        usage = {"prompt_tokens": self.usage[0], "completion_tokens": self.usage[1]} if self.usage else None
        return Reply({"choices": [{"message": message}], "usage": usage}, 0.1, 1)


def call(name, **arguments):
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"content": None, "tool_calls": [{"id": f"id-{name}", "type": "function", "function": function}]}


def fenced(name, **arguments):
    return {"content": f"```json\n{json.dumps({'name': name, 'arguments': arguments})}\n```"}


ANSWER = call("answer", status="answered", answer="2", citations=[{"path": "a.md", "line_start": 1}])


@pytest.fixture
def box(tmp_path):
    (tmp_path / "a.md").write_text("".join(f"line {n} of a\n" for n in range(1, 101)), encoding="utf-8")
    return ToolBox(FILES, FileTools(tmp_path))


def attempt(box, script, tools_in_text=False, body=(), **caps):
    events = []
    setup = Setup("m", 0.5, 7, Caps(**caps), tools_in_text, dict(body))
    one = Attempt(
        QUESTION, box, script, setup, lambda event, **facts: events.append({"event": event, **facts})
    )
    outcome = one.run(repeat=2, attempt=1)
    assert outcome == events[-1]["outcome"]
    return outcome, events


def tools_of(events):
    return [event for event in events if event["event"] == "tool"]


def test_a_call_its_result_and_the_answer(box):
    script = Script(call("read_file", path="a.md", line_end=2), ANSWER)
    outcome, events = attempt(box, script)
    assert outcome == "answered"
    (tool,) = tools_of(events)
    assert (tool["shown"], tool["is_error"], tool["is_cut"]) == ([("a.md", 1, 2)], False, False)
    assert events[-1]["answer"] == "2"
    assert events[-1]["citations"] == [{"path": "a.md", "line_start": 1, "line_end": 1}]
    first, second = script.asked
    assert (first["seed"], first["temperature"], first["model"]) == (9, 0.5, "m")
    assert [tool["function"]["name"] for tool in first["tools"]] == ["ls", "grep", "read_file", "answer"]
    assert second["messages"][:2] == first["messages"]
    assert first["messages"][1]["content"].endswith("This is asked of: a.md")
    assert second["messages"][-1] == {
        "role": "tool", "tool_call_id": "id-read_file", "content": "1\tline 1 of a\n2\tline 2 of a",
    }  # fmt: skip
    requests = [event for event in events if event["event"] == "request"]
    assert [len(request["messages"]) for request in requests] == [2, 2], "the record holds each message once"


def test_a_model_without_tool_calling_uses_blocks(box):
    script = Script(fenced("ls"), fenced("answer", status="not_answerable"))
    outcome, _ = attempt(box, script, tools_in_text=True)
    assert outcome == "not_answerable"
    assert "tools" not in script.asked[0]
    assert "- read_file: " in script.asked[0]["messages"][0]["content"]
    assert script.asked[1]["messages"][-1] == {"role": "user", "content": "Result of ls:\na.md (100 lines)"}


def test_the_cap_of_turns(box):
    script = Script(call("ls"))
    outcome, events = attempt(box, script, turns=3)
    assert outcome == "turns"
    assert events[-1]["answer"] == ""
    assert len(script.asked) == 3
    assert script.asked[2]["messages"][-1]["content"] == LAST_TURN
    assert not any(LAST_TURN in str(request) for request in script.asked[:2])


def test_the_cap_of_characters_of_one_call_and_of_all(box):
    script = Script(call("read_file", path="a.md"), ANSWER)
    _, events = attempt(box, script, tool_chars=200)
    (tool,) = tools_of(events)
    assert len(tool["result"]) <= 200
    assert tool["is_cut"]
    script = Script(*[call("read_file", path="a.md")] * 4, ANSWER)
    _, events = attempt(box, script, tool_chars=200, all_tool_chars=500)
    assert [len(tool["result"]) for tool in tools_of(events)][:3] == [200, 200, 100]
    assert tools_of(events)[3]["result"] == USED_UP


@pytest.mark.parametrize("usage", [(2000, 100), None])
def test_the_cap_of_tokens(box, usage):
    script = Script(call("read_file", path="a.md", line_end=20), usage=usage)
    outcome, events = attempt(box, script, total_tokens=9000)
    assert outcome == "tokens"
    replies = [event for event in events if event["event"] == "reply"]
    assert 2 <= len(replies) < 9
    assert sum(reply["usage"][0] + reply["usage"][1] for reply in replies) <= 9000
    assert script.asked[-1]["messages"][-1]["content"] == LAST_TURN
    assert {reply["is_estimated"] for reply in replies} == {usage is None}
    outcome, events = attempt(box, Script(ANSWER), total_tokens=10)
    assert outcome == "tokens"
    assert [event["event"] for event in events] == ["start", "end"]


def test_what_is_no_call_and_what_is_a_wrong_one_costs_a_turn(box):
    broken = {"content": "", "tool_calls": [{"id": "x", "function": {"name": "ls", "arguments": "{"}}]}
    script = Script(
        {"content": "It is 2."}, call("search", q="x"), broken, call("answer", status="maybe"), ANSWER
    )
    outcome, events = attempt(box, script)
    assert outcome == "answered"
    assert script.asked[1]["messages"][-1]["content"] == NUDGE
    assert [tool["is_error"] for tool in tools_of(events)] == [True] * 3
    assert "there is no tool 'search'; there are ls, grep" in tools_of(events)[0]["result"]
    assert "expected one of answered, not_answerable" in tools_of(events)[2]["result"]


def test_a_failed_call_ends_the_attempt_as_an_error(box):
    outcome, events = attempt(box, Script(call("ls"), ChatFault("answered 500")))
    assert outcome == "error"
    assert events[-2] == {"event": "failure", "turn": 2, "error": "answered 500"}


def test_calls_in_one_reply_are_made_in_order_up_to_the_answer(box):
    both = call("ls")
    both["tool_calls"] += [*ANSWER["tool_calls"], *call("grep", pattern="x")["tool_calls"]]
    outcome, events = attempt(box, Script(both))
    assert outcome == "answered"
    assert [tool["name"] for tool in tools_of(events)] == ["ls"]


def test_fields_of_the_request_can_be_changed(box):
    script = Script(ANSWER)
    attempt(box, script, body={"max_tokens": None, "max_completion_tokens": 5})
    assert "max_tokens" not in script.asked[0]
    assert script.asked[0]["max_completion_tokens"] == 5
