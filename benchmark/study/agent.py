"""One attempt: a model, a question and the tools of one arm, until there is an answer or a cap is met."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from benchmark.study.chat import Call, Chat, ChatFault, Message, Usage, read_message, read_usage
from benchmark.study.file_tools import ToolFault
from benchmark.study.prompt import (
    ANSWER,
    LAST_TURN,
    NUDGE,
    USED_UP,
    Caps,
    question_prompt,
    read_answer,
    system_prompt,
    tools_as_text,
)
from benchmark.study.questions import Question
from benchmark.study.record import Log, now
from benchmark.study.tool_box import ToolBox, cut
from searchsvc.tokens import cost


@dataclass(frozen=True, slots=True)
class Setup:
    """What all attempts have in common."""

    model: str
    temperature: float
    seed: int
    caps: Caps
    tools_in_text: bool
    """Describe the tools in the system prompt, for models without tool calling."""
    body: Mapping[str, Any]
    """More fields of each request; null takes a field away."""


class Attempt:
    """One question in one arm."""

    def __init__(self, question: Question, box: ToolBox, chat: Chat, setup: Setup, log: Log) -> None:
        self._question, self._box, self._chat, self._setup, self._log = question, box, chat, setup, log
        self._messages = [
            {"role": "system", "content": system_text(box, setup)},
            {"role": "user", "content": question_prompt(question)},
        ]
        self._sent = 0
        self._characters = 0
        self._tokens = 0
        self._next = cost(self._messages[0]["content"]) + cost(json.dumps(box.tools))
        """Tokens that the next request will need, about."""
        self._answer: tuple[str, str, list[dict[str, Any]]] = ("", "", [])

    def run(self, repeat: int, attempt: int) -> str:
        """Make the attempt and return its outcome; everything else goes to the log."""
        start = time.perf_counter()
        self._log("start", **{"try": attempt}, time=now())
        outcome = self._converse(repeat)
        _, answer, citations = self._answer
        seconds = round(time.perf_counter() - start, 3)
        self._log("end", outcome=outcome, answer=answer, citations=citations, seconds=seconds)
        return outcome

    def _converse(self, repeat: int) -> str:
        caps = self._setup.caps
        for turn in range(1, caps.turns + 1):
            left = caps.total_tokens - self._tokens
            if self._next > left:
                return "tokens"
            # With less than two further requests' worth of tokens left, the next one is the last.
            if turn == caps.turns or (turn > 1 and 2 * self._next > left):
                self._say(LAST_TURN)
            try:
                message = self._ask(turn, repeat)
            except ChatFault as fault:
                self._log("failure", turn=turn, error=str(fault))
                return "error"
            self._messages.append(message.echo)
            if self._act(message.calls):
                return self._answer[0]
        return "turns"

    def _say(self, text: str) -> None:
        self._messages.append({"role": "user", "content": text})

    def _ask(self, turn: int, repeat: int) -> Message:
        setup = self._setup
        fields: dict[str, Any] = {
            "model": setup.model,
            "temperature": setup.temperature,
            "seed": setup.seed + repeat,
            "max_tokens": setup.caps.reply_tokens,
        }
        fields = {name: value for name, value in (fields | dict(setup.body)).items() if value is not None}
        self._log("request", turn=turn, fields=fields, messages=self._messages[self._sent :])
        self._sent = len(self._messages)
        tools = {} if setup.tools_in_text else {"tools": [_as_function(tool) for tool in self._box.tools]}
        reply = self._chat.complete({**fields, "messages": self._messages, **tools})
        usage = read_usage(reply.body)
        is_estimated = usage is None
        message = read_message(reply.body)
        usage = usage or Usage(self._next, cost(json.dumps(message.echo)), 0)
        self._log(
            "reply",
            turn=turn,
            body=reply.body,
            usage=[usage.tokens_in, usage.tokens_out, usage.tokens_cached],
            is_estimated=is_estimated,
            seconds=round(reply.seconds, 3),
            tries=reply.tries,
        )
        self._tokens += usage.tokens_in + usage.tokens_out
        self._next = usage.tokens_in + usage.tokens_out
        return message

    def _act(self, calls: tuple[Call, ...]) -> bool:
        """Make the calls; true when one of them is the answer."""
        if not calls:
            self._say(NUDGE)
        in_text: list[str] = []
        for call in calls:
            result = self._result(call)
            if self._answer[0]:
                return True
            if call.id:
                self._messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
            else:
                in_text.append(f"Result of {call.name or 'the block'}:\n{result}")
            self._next += cost(result)
        if in_text:
            self._say("\n\n".join(in_text))
        return False

    def _result(self, call: Call) -> str:
        caps = self._setup.caps
        start = time.perf_counter()
        limit = min(caps.tool_chars, caps.all_tool_chars - self._characters)
        shown: list[tuple[str, int, int]] = []
        is_error, is_cut = True, False
        if call.fault:
            text = f"Error: {call.fault}"
        elif call.name == ANSWER:
            try:
                self._answer = read_answer(call.arguments)
                return ""
            except ToolFault as fault:
                text = f"Error: {fault}"
        elif limit <= 0:
            text = USED_UP
        else:
            output = self._box.call(call.name, call.arguments)
            text, shown, is_cut = cut(output.lines, limit)
            is_error = output.is_error
            self._characters += len(text)
        self._log(
            "tool",
            name=call.name,
            arguments=call.arguments,
            result=text,
            is_error=is_error,
            is_cut=is_cut,
            shown=shown,
            seconds=round(time.perf_counter() - start, 3),
        )
        return text


def system_text(box: ToolBox, setup: Setup) -> str:
    """Return the system prompt of an arm: the same words, then the server's own, then tools as text."""
    parts = [system_prompt(setup.caps), box.instructions]
    if setup.tools_in_text:
        parts.append(tools_as_text(box.tools))
    return "\n\n".join(part for part in parts if part)


def _as_function(tool: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "function", "function": dict(tool)}
