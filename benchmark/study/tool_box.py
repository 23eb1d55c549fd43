"""The tools of each arm: those for files, and beside them those of a real ``searchsvc serve``.

The server runs as a host runs it: a child process, spoken to over its pipes, its tools and instructions
taken as it gives them. Its index is complete, and its model loaded, before the first question.
"""

import re
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError
from mcp.types import CONNECTION_CLOSED

from benchmark.core import say
from benchmark.errors import BenchmarkError
from benchmark.processes import environment
from benchmark.study.chat import KEY_VARIABLES
from benchmark.study.file_tools import FILE_TOOLS, FileTools, Line, Place, ToolFault, walk
from benchmark.study.prompt import ANSWER_TOOL
from searchsvc.errors import ReadingError, SearchError
from searchsvc.reading.decode import decode

FILES, BOTH = "files", "files+searchsvc"
ARMS = (FILES, BOTH)
_CALL_SECONDS = 300.0
_READY_SECONDS = 300.0
_POLL_SECONDS = 0.5
_DONE, _IN_PART = 0, 4
"""Exit codes of ``searchsvc index``; in part means that single notes could not be read."""
_MORE = "\n(cut here: the output may have no more characters)"
Range = tuple[str, int, int]
"""A path with its first and last line."""


@dataclass(frozen=True, slots=True)
class Output:
    """What a tool returned."""

    lines: list[Line]
    is_error: bool = False


class ServerGone(SearchError):
    """The server ended or cannot be reached; the run stops, and can go on later."""


class Lines:
    """Finds the lines of the corpus that a text shows whole, whichever tool made the text.

    Lines that stand in several places are told apart by the line before, then by the path in the nearest line
    above that is not of the corpus, then by the paths in all the text.
    """

    def __init__(self, corpus: Path) -> None:
        self._places: dict[str, list[Place]] = defaultdict(list)
        self._texts: dict[Place, str] = {}
        folder = corpus.resolve()
        for file in walk(folder, folder):
            try:
                lines = decode(file.read_bytes()).lines
            except (ReadingError, OSError):
                continue
            name = file.relative_to(folder).as_posix()
            for number, line in enumerate(lines, 1):
                self._texts[name, number] = line.strip()
                if line.strip():
                    self._places[line.strip()].append((name, number))

    def mark(self, text: str) -> list[Line]:
        """Return the lines of a text with their places."""
        marked: list[Line] = []
        last: Place | None = None
        header = ""
        for line in text.split("\n"):
            place = self._place(line.strip(), last, (header, text))
            if line.strip() and not place:
                header = line
            last = place
            marked.append(Line(line, place))
        return marked

    def _place(self, line: str, last: Place | None, naming: Sequence[str]) -> Place | None:
        following = (last[0], last[1] + 1) if last else ("", 0)
        if self._texts.get(following) == line:
            return following
        if not any(character.isalnum() for character in line):
            return None
        places = self._places.get(line, [])
        for text in naming:
            if len(places) > 1:
                places = [place for place in places if place[0] in text] or places
        return places[0] if len(places) == 1 else None


@dataclass(slots=True)
class Server:
    """A running server."""

    tools: list[dict[str, Any]]
    """As functions of the chat API."""
    instructions: str
    _portal: BlockingPortal
    _client: Client
    _lines: Lines
    _names: dict[str, str] = field(default_factory=dict)
    """The server's name of each tool, where the chat API would not take that."""

    def call(self, name: str, arguments: Mapping[str, Any]) -> Output:
        """Call a tool; ``ServerGone`` when the server does not answer any more."""
        try:
            result = self._portal.call(self._client.call_tool, self._names[name], dict(arguments))
        except MCPError as error:
            if error.code == CONNECTION_CLOSED:
                raise ServerGone("searchsvc serve has ended; the same command goes on") from error
            return Output([Line(f"Error: {error}")], is_error=True)
        except Exception as error:
            raise ServerGone(f"searchsvc serve does not answer ({type(error).__name__}: {error})") from error
        texts = [_as_text(block) for block in result.content]
        return Output(self._lines.mark("\n".join(texts)), bool(result.is_error))


def _as_text(block: Any) -> str:
    if block.type == "text":
        return str(block.text)
    return f"[{block.type}: {getattr(block, 'mime_type', '')}, not shown: this study sends text alone]"


@dataclass(frozen=True, slots=True)
class ToolBox:
    """The tools of one arm."""

    arm: str
    files: FileTools
    server: Server | None = None

    @property
    def tools(self) -> list[dict[str, Any]]:
        """All tools as functions of the chat API; those that both arms have come first."""
        return [*FILE_TOOLS, ANSWER_TOOL, *(self.server.tools if self.server else ())]

    @property
    def instructions(self) -> str:
        """The server's own; empty without one."""
        return self.server.instructions if self.server else ""

    def call(self, name: str, arguments: Mapping[str, Any]) -> Output:
        """Call a tool."""
        try:
            if any(tool["name"] == name for tool in FILE_TOOLS):
                return Output(self.files.call(name, arguments))
            if self.server and any(tool["name"] == name for tool in self.server.tools):
                return self.server.call(name, arguments)
            known = ", ".join(tool["name"] for tool in self.tools)
            raise ToolFault(f"there is no tool {name!r}; there are {known}")
        except ToolFault as fault:
            return Output([Line(f"Error: {fault}")], is_error=True)


def cut(lines: Sequence[Line], limit: int) -> tuple[str, list[Range], bool]:
    """Return the text of whole lines within a limit, the ranges that it shows, and whether it was cut."""
    whole = "\n".join(line.text for line in lines)
    if len(whole) <= limit:
        return whole, ranges(line.place for line in lines), False
    room = max(0, limit - len(_MORE))
    used, kept = 0, 0
    for line in lines:
        used += len(line.text) + 1
        if used - 1 > room:
            break
        kept += 1
    text = whole[:room] + _MORE
    return text[:limit], ranges(line.place for line in lines[:kept]), True


def ranges(places: Iterable[Place | None]) -> list[Range]:
    """Return places as ranges of lines, in order."""
    found: list[Range] = []
    for path, number in sorted({place for place in places if place}):
        if found and found[-1][0] == path and found[-1][2] == number - 1:
            found[-1] = (path, found[-1][1], number)
        else:
            found.append((path, number, number))
    return found


@contextmanager
def open_boxes(corpus: Path, model: str, toolsets: str) -> Iterator[dict[str, ToolBox]]:
    """Yield the tools of both arms, with the index of the corpus complete, in a temporary folder."""
    if not corpus.is_dir():
        raise BenchmarkError(f"no corpus folder at {corpus}")
    files = FileTools(corpus)
    with ExitStack() as stack:
        folder = Path(
            stack.enter_context(
                tempfile.TemporaryDirectory(prefix="searchsvc-study-", ignore_cleanup_errors=True)
            )
        )
        server = stack.enter_context(_serve(corpus, folder, model, toolsets))
        yield {FILES: ToolBox(FILES, files), BOTH: ToolBox(BOTH, files, server)}


@contextmanager
def _serve(corpus: Path, folder: Path, model: str, toolsets: str) -> Iterator[Server]:
    # The instant model, which serves while the other one works, would decide nothing: all is ready.
    settings = "instant_model: none\n" + (f"model: {model}\n" if model else "")
    (folder / "config.yaml").write_text(settings, encoding="utf-8")
    base = [
        "-X",
        "utf8",
        "-m",
        "searchsvc",
        "--config",
        str(folder / "config.yaml"),
        "--data-dir",
        str(folder),
    ]
    variables = {name: text for name, text in environment().items() if name not in KEY_VARIABLES}
    say("indexing ...")
    done = subprocess.run(
        [sys.executable, *base, "index", str(corpus)],
        capture_output=True,
        encoding="utf-8",
        env=variables,
        check=False,
    )
    if done.returncode not in (_DONE, _IN_PART):
        raise BenchmarkError(f"searchsvc index failed: {_last_line(done.stderr)}")
    arguments = [*base, "serve", str(corpus), *(["--toolsets", toolsets] if toolsets else [])]
    with (
        (folder / "server.log").open("w+", encoding="utf-8") as log,
        start_blocking_portal() as portal,
        ExitStack() as stack,
    ):
        process = StdioServerParameters(command=sys.executable, args=arguments, env=variables)
        client = Client(stdio_client(process, errlog=log), read_timeout_seconds=_CALL_SECONDS)
        try:
            stack.enter_context(_unwrapped(portal.wrap_async_context_manager(client)))
            listed = portal.call(client.list_tools).tools
        except Exception as error:
            log.seek(0)
            raise BenchmarkError(f"searchsvc serve failed: {_last_line(log.read()) or error}") from error
        names = {re.sub(r"[^\w-]", "_", tool.name, flags=re.ASCII): tool.name for tool in listed}
        tools = [
            {"name": name, "description": tool.description or "", "parameters": tool.input_schema}
            for name, tool in zip(names, listed, strict=True)
        ]
        if taken := names.keys() & {tool["name"] for tool in (*FILE_TOOLS, ANSWER_TOOL)}:
            raise BenchmarkError(f"searchsvc has tools of the same name as the others: {', '.join(taken)}")
        server = Server(tools, client.instructions or "", portal, client, Lines(corpus), names)
        _wait_until_ready(server, model)
        yield server


@contextmanager
def _unwrapped(manager: AbstractContextManager[Client]) -> Iterator[Client]:
    """Open and close a client without telling it of errors: it would wrap them in groups."""
    opened = manager.__enter__()
    try:
        yield opened
    finally:
        manager.__exit__(None, None, None)


def _wait_until_ready(server: Server, model: str) -> None:
    """Wait until no reply says any more that something is still loading."""
    if model == "none" or "semantic_search" not in server._names:
        return
    end = time.monotonic() + _READY_SECONDS
    while time.monotonic() < end:
        result = server._portal.call(
            server._client.call_tool, "semantic_search", {"query": "a first question"}
        )
        notices = (result.structured_content or {}).get("notices", [])
        if not any(" yet" in notice for notice in notices):
            return
        time.sleep(_POLL_SECONDS)
    raise BenchmarkError(f"the model of searchsvc is not ready after {_READY_SECONDS:.0f} s: {notices}")


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1].strip() if lines else ""
