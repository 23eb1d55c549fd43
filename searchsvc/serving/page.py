"""The tools as a page of documentation: ``python -m searchsvc.serving.page > docs/tools.md``."""

import sys
from typing import Any

from searchsvc.config import Config, make_root
from searchsvc.serving.server import make_server
from searchsvc.serving.toolsets import DEFAULT_TOOLSETS, INSTRUCTIONS, TOOLSETS

_HEAD = """# Tools

Made from the code by `make docs`. This is what an agent sees: the instructions of the server, and of each tool its
description and parameters. Unknown parameters are refused by name; numbers and lists may come as text. Every reply
fits `max_tokens`, says what it left out, and gives the call that returns it.

`searchsvc serve --toolsets` chooses among: """  # noqa: E501


def tools_page() -> str:
    """Return the page, in Markdown."""
    from pathlib import Path

    server = make_server(Config(roots=(make_root(Path.cwd()),)), "all")
    listed = {tool.name: tool for tool in server.listed_tools()}
    sets = ", ".join(f"`{name}`" for name in TOOLSETS)
    parts = [f"{_HEAD}{sets}, or `all`. Default: `{','.join(DEFAULT_TOOLSETS)}`.", "## Instructions"]
    parts.append("\n".join(f"> {line}" for line in INSTRUCTIONS.split("\n")))
    for name, tools in TOOLSETS.items():
        parts.append(f"## Toolset `{name}`")
        for tool in tools:
            found = listed[tool.called]
            parts += [f"### {found.name}", found.description or "", _table(found.parameters)]
            if tool.aliases:
                others = ", ".join(f"`{alias}` for `{name}`" for alias, name in tool.aliases.items())
                parts.append(f"Also accepted: {others}.")
    return "\n\n".join(part for part in parts if part) + "\n"


def _table(schema: dict[str, Any]) -> str:
    rows = []
    for name, about in schema.get("properties", {}).items():
        default = "required" if name in schema.get("required", ()) else f"`{about.get('default')!r}`"
        signs = {"minimum": "≥", "maximum": "≤"}
        bounds = [f"{sign} {about[key]}" for key, sign in signs.items() if key in about]
        said = ", ".join(filter(None, [about.get("description", ""), *bounds]))
        rows.append(f"| `{name}` | {_kind(about)} | {default} | {said.replace('|', chr(92) + '|')} |")
    return "\n".join(["| parameter | type | default | |", "| --- | --- | --- | --- |", *rows]) if rows else ""


def _kind(about: dict[str, Any]) -> str:
    if "enum" in about:
        return ", ".join(f"`{value}`" for value in about["enum"])
    if "anyOf" in about:
        return " or ".join(_kind(part) for part in about["anyOf"])
    if about.get("type") == "array":
        return f"list of {_kind(about.get('items', {}))}"
    return str(about.get("type", "any"))


if __name__ == "__main__":
    sys.stdout.write(tools_page())
