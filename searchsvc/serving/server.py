"""The MCP server: lifespan, argument checks, errors mapped once, stdio."""

import difflib
import inspect
import json
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp import MCPError
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import INVALID_PARAMS, ToolAnnotations
from pydantic import ValidationError

from searchsvc import __version__
from searchsvc.background import Worker
from searchsvc.config import Config, with_imports
from searchsvc.errors import SearchError
from searchsvc.serving.desk import Desk, Desks
from searchsvc.serving.resources import add_resources
from searchsvc.serving.stdio import standard_streams
from searchsvc.serving.tool import Tool
from searchsvc.serving.toolsets import choose, instructions, is_served

_UNSAID = frozenset(("title", "maxLength", "minLength", "maxItems", "additionalProperties"))
_UNSAID_OF_RESULTS = _UNSAID | {"default", "description"}


class Server(MCPServer[Desk]):
    """An MCP server that refuses unknown arguments and lets the model see what went wrong."""

    def __init__(self, *args: Any, tools: list[Tool], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._aliases: dict[str, dict[str, str]] = {}
        for tool in tools:
            annotations = ToolAnnotations(
                read_only_hint=tool.is_reading,
                destructive_hint=None if tool.is_reading else False,
                idempotent_hint=True,
                open_world_hint=tool.is_open,
            )
            described = inspect.getdoc(tool.function)
            self.add_tool(
                tool.function, tool.called, title=tool.title, description=described, annotations=annotations
            )
            self._aliases[tool.called] = tool.aliases
        for listed in self.listed_tools():
            _slim(listed.parameters, _UNSAID)
            _slim(listed.output_schema, _UNSAID_OF_RESULTS)
            _keep_required(listed.output_schema)
        self._parameters: dict[str, dict[str, Any]] = {
            listed.name: listed.parameters["properties"] for listed in self.listed_tools()
        }

    async def run_stdio_async(self) -> None:
        """Serve over stdin and stdout until the client closes them."""
        async with standard_streams() as (requests, replies):
            options = self._lowlevel_server.create_initialization_options()
            await self._lowlevel_server.run(requests, replies, options)

    def listed_tools(self) -> list[Any]:
        """Return the tools with their schemas, in the order in which they are listed."""
        return list(self._tool_manager.list_tools())

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Desk, Any] | None = None
    ) -> Any:
        """Check argument names, read numbers and lists sent as text, and translate errors."""
        if name not in self._parameters:
            near = difflib.get_close_matches(name, self._parameters, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(self._parameters)}"
            raise MCPError(INVALID_PARAMS, f"Unknown tool: {name[:100]}; {hint}")
        arguments = self._accept(name, arguments)
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            cause = error.__cause__
            if isinstance(cause, SearchError):
                raise ToolError(str(cause)) from error
            if isinstance(cause, ValidationError):
                raise ToolError(f"{name}: {_explain(cause)}") from error
            raise

    def _accept(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        known, aliases = self._parameters[tool], self._aliases[tool]
        accepted: dict[str, Any] = {}
        for name, value in arguments.items():
            target = name if name in known else aliases.get(name, name)
            if target not in known:
                near = difflib.get_close_matches(name, known, n=1)
                takes = f"it takes: {', '.join(known)}" if known else "it takes none"
                hint = f"did you mean {near[0]!r}?" if near else takes
                raise ToolError(f"{tool} has no parameter {name!r}; {hint}")
            if target in accepted:
                raise ToolError(f"{tool}: {name!r} and another argument both mean {target!r}; give one")
            if value is not None and not _is_left_out(value, known[target]):
                accepted[target] = _read_text(value, known[target])
        return accepted


def _slim(schema: Any, unsaid: frozenset[str]) -> None:
    """Take keywords out of a schema as it is listed: what a model learns nothing from costs it tokens.

    Arguments and results are still checked against the whole schema.
    """
    if isinstance(schema, list):
        for item in schema:
            _slim(item, unsaid)
    elif isinstance(schema, dict):
        for key in unsaid & schema.keys():
            if not isinstance(schema[key], dict):  # a parameter may be called as a keyword is
                del schema[key]
        for value in schema.values():
            _slim(value, unsaid)


def _keep_required(schema: dict[str, Any] | None) -> None:
    """Leave out of the schema of a result what it need not have."""
    if schema and "required" in schema:
        schema["properties"] = {name: schema["properties"][name] for name in schema["required"]}


def _is_left_out(value: Any, schema: dict[str, Any]) -> bool:
    """Tell whether a client sent an empty text for what it leaves out, where that is no value."""
    takes_text = schema.get("type") in ("string", "array", None) and "enum" not in schema
    return value == "" and "default" in schema and not takes_text


def _read_text(value: Any, schema: dict[str, Any]) -> Any:
    """Read what a client sent as text, or as a number where text is wanted, as it was meant."""
    kind = schema.get("type")
    if kind == "string" and isinstance(value, int | float) and not isinstance(value, bool):
        return json.dumps(value)
    if kind == "array" and isinstance(value, int | float) and not isinstance(value, bool):
        value = [value]
    if kind == "array" and isinstance(value, list):
        return [_read_text(item, schema.get("items", {})) for item in value]
    if kind == "array" and isinstance(value, dict):
        return [value]
    if kind == "array" and isinstance(value, str):
        if not value.lstrip().startswith("["):
            return [value] if value else []
    elif kind not in ("array", "object", "integer", "boolean") or not isinstance(value, str):
        return value
    try:
        read = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return _read_text(read, schema) if isinstance(read, list) else read


def _explain(error: ValidationError) -> str:
    """Say which arguments are wrong, in one line."""
    wrong = []
    for fault in error.errors(include_url=False):
        where = ".".join(map(str, fault["loc"]))
        given = "" if fault["type"] == "missing" else f" is {str(fault['input'])[:80]!r}"
        wrong.append(f"{where}{given}: {fault['msg']}")
    return "; ".join(wrong)


def make_server(config: Config, toolsets: str = "") -> Server:
    """Build a server over a configuration; raise ``ConfigError`` for an unknown toolset.

    Imported documents are served beside the roots when the reader's tools are.
    """
    tools = choose(toolsets)
    has_reader = is_served("reader", tools)
    if has_reader:
        config = with_imports(config)

    @asynccontextmanager
    async def lifespan(server: MCPServer[Desk]) -> AsyncIterator[Desk]:
        worker = Worker(config)
        worker.start()
        try:
            yield desks.open(worker)
        finally:
            worker.stop()

    desks = Desks()
    server = Server(
        "searchsvc", version=__version__, instructions=instructions(tools), lifespan=lifespan, tools=tools
    )
    add_resources(server, desks, with_reader=has_reader)
    return server


def run(config: Config, toolsets: str = "") -> None:
    """Serve over stdin and stdout until the client closes them, or a signal ends the process."""
    server = make_server(config, toolsets)
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, force=True)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _end)
    if sys.stdin.isatty():
        names = ", ".join(root.name for root in config.roots)
        sys.stderr.write(f"serving {names} over MCP: a client is to talk to this process; Ctrl-C ends it\n")
    server.run("stdio")


def _end(number: int, frame: object) -> None:
    """End at once: the transport's thread sits in a read of stdin, and what was committed is safe."""
    os._exit(128 + number)
