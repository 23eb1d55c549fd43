"""What an agent has without searchsvc: ``ls``, ``grep`` and ``read_file``, confined to one folder.

A path is followed to where it really leads before it is looked at, so neither ``..`` nor a symbolic link
leaves the folder. Hidden files are not there. Lines are counted as searchsvc counts them.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmark.processes import environment
from searchsvc.errors import ReadingError
from searchsvc.reading.decode import decode

Place = tuple[str, int]
"""A path, relative to the corpus, and a line of it, from 1."""
GREP_SECONDS = 20.0
"""An expression that needs longer is one that will not end."""
_MOST_MATCHES = 1000


class ToolFault(Exception):
    """A call that cannot be done as asked; the text tells the model why."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a tool's output."""

    text: str
    place: Place | None = None
    """The line of the corpus that it shows whole."""


FILE_TOOLS: tuple[dict[str, Any], ...] = (
    {
        "name": "ls",
        "description": "List a folder: files with their sizes in lines, folders with a slash at the end.",
        "parameters": {
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "Folder; default: the top."},
                "recursive": {"type": "boolean", "description": "List what is below as well; default false."},
            },
        },
    },
    {
        "name": "grep",
        "description": "Find the lines that match a regular expression (Python's syntax), as path:line:text. "
        "Lines of context have dashes in place of the colons.",
        "parameters": {
            "type": "object",
            "properties": {
                "pattern": {"type": "string", "description": "Regular expression."},
                "path": {"type": "string", "description": "File or folder; default: all files."},
                "ignore_case": {"type": "boolean", "description": "Default false."},
                "context": {"type": "integer", "description": "Lines before and after; default 0."},
                "max_results": {"type": "integer", "description": "Most matching lines; default 100."},
            },
            "required": ["pattern"],
        },
    },
    {
        "name": "read_file",
        "description": "Read a text file, or a range of its lines. Each line follows its number and a tab.",
        "parameters": {
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "File."},
                "line_start": {"type": "integer", "description": "First line, from 1; default 1."},
                "line_end": {"type": "integer", "description": "Last line, inclusive; default the last."},
            },
            "required": ["path"],
        },
    },
)
"""As functions of the chat API."""


class FileTools:
    """The tools over one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self._tools: dict[str, Callable[..., list[Line]]] = {
            "ls": self._ls,
            "grep": self._grep,
            "read_file": self._read_file,
        }

    def call(self, name: str, arguments: Mapping[str, Any]) -> list[Line]:
        """Run a tool; ``ToolFault`` for arguments that it cannot take."""
        schema = next(tool["parameters"] for tool in FILE_TOOLS if tool["name"] == name)
        return self._tools[name](**checked(name, schema, arguments))

    def resolve(self, path: str) -> Path:
        """Return where a path really leads; ``ToolFault`` when that is outside, hidden or not there."""
        try:
            found = (self.folder / (path.strip() or ".")).resolve()
            parts = found.relative_to(self.folder).parts
        except (ValueError, OSError, RuntimeError) as error:
            raise ToolFault(f"{path!r} is not inside the folder") from error
        if any(part.startswith(".") for part in parts) or not (found.is_dir() or found.is_file()):
            raise ToolFault(f"there is no {path!r}; ls shows what there is")
        return found

    def _name(self, file: Path) -> str:
        return file.relative_to(self.folder).as_posix()

    def _ls(self, path: str = ".", recursive: bool = False) -> list[Line]:
        top = self.resolve(path)
        if not top.is_dir():
            raise ToolFault(f"{path!r} is a file; read_file reads it")
        if recursive:
            entries = list(walk(top, self.folder))
        else:
            inside = (entry for entry in sorted(top.iterdir()) if _is_shown(entry, self.folder))
            entries = [entry for entry in inside if entry.is_dir() or entry.is_file()]
        return [Line(self._entry(entry)) for entry in entries] or [Line("nothing here")]

    def _entry(self, entry: Path) -> str:
        if entry.is_dir():
            return f"{self._name(entry)}/"
        try:
            return f"{self._name(entry)} ({len(decode(entry.read_bytes()).lines)} lines)"
        except (ReadingError, OSError):
            return f"{self._name(entry)} (not text)"

    def _read_file(self, path: str, line_start: int = 1, line_end: int = 0) -> list[Line]:
        file = self.resolve(path)
        if not file.is_file():
            raise ToolFault(f"{path!r} is a folder; ls lists it")
        try:
            lines = decode(file.read_bytes()).lines
        except (ReadingError, OSError) as error:
            raise ToolFault(f"{path!r} is not a text file") from error
        last = min(line_end or len(lines), len(lines))
        if line_start < 1 or line_end < 0 or line_start > max(last, 1):
            raise ToolFault(f"no lines {line_start} to {line_end or 'the end'}: {path!r} has {len(lines)}")
        shown = range(line_start, last + 1)
        return [Line(f"{n}\t{lines[n - 1]}", (self._name(file), n)) for n in shown] or [Line("(empty file)")]

    def _grep(
        self,
        pattern: str,
        path: str = ".",
        ignore_case: bool = False,
        context: int = 0,
        max_results: int = 100,
    ) -> list[Line]:
        try:
            re.compile(pattern)
        except (re.error, RecursionError, OverflowError) as error:
            raise ToolFault(f"not a regular expression: {error}") from error
        if context < 0 or not 1 <= max_results <= _MOST_MATCHES:
            raise ToolFault(f"context is a number from 0, max_results one from 1 to {_MOST_MATCHES}")
        order = {
            "folder": str(self.folder),
            "top": str(self.resolve(path)),
            "pattern": pattern,
            "flags": int(re.IGNORECASE if ignore_case else 0),
            "context": context,
            "most": max_results,
        }
        lines: list[Line] = []
        last: Place | None = None
        found = _search_apart(order)
        for name, number, text, is_match in found["lines"]:
            if context and last and last != (name, number - 1):
                lines.append(Line("--"))
            mark = ":" if is_match else "-"
            last = (name, number)
            lines.append(Line(f"{name}{mark}{number}{mark}{text}", last))
        if found["is_cut"]:
            lines.append(Line(f"(more than {max_results} matching lines; the rest is left out)"))
        return lines or [Line("no match")]


def checked(name: str, schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments that fit a tool's schema; ``ToolFault`` says what does not.

    Nulls count as not given, and numbers may be written as texts: small models do both.
    """
    properties = schema["properties"]
    kinds = {"string": str, "integer": int, "boolean": bool, "array": list}
    given = {key: value for key, value in arguments.items() if value is not None}
    for key, value in given.items():
        if key not in properties:
            raise ToolFault(f"{name} has no parameter {key!r}; it has {', '.join(properties)}")
        wanted = kinds[properties[key]["type"]]
        if wanted is int and isinstance(value, str | float) and not isinstance(value, bool):
            text = str(value).removesuffix(".0")
            value = given[key] = int(text) if re.fullmatch(r"-?\d{1,9}", text) else value
        if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
            raise ToolFault(f"{key} of {name} is {value!r}, expected a {properties[key]['type']}")
    if missing := [key for key in schema.get("required", ()) if key not in given]:
        raise ToolFault(f"{name} needs {', '.join(missing)}")
    return given


def walk(top: Path, folder: Path) -> Iterator[Path]:
    """Yield the files under ``top`` in order, but no hidden ones and none that really lie elsewhere."""
    if top.is_file():
        yield top
        return
    for place, folders, files in os.walk(top):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            file = Path(place, name)
            if _is_shown(file, folder) and file.is_file():
                yield file


def _is_shown(entry: Path, folder: Path) -> bool:
    return not entry.name.startswith(".") and entry.resolve().is_relative_to(folder)


def _search_apart(order: Mapping[str, Any]) -> dict[str, Any]:
    """Search in a process of its own: nothing else ends an expression that backtracks for ever."""
    command = [sys.executable, "-X", "utf8", "-m", "benchmark.study.file_tools"]
    try:
        done = subprocess.run(
            command,
            input=json.dumps(order),
            capture_output=True,
            encoding="utf-8",
            timeout=GREP_SECONDS,
            env=environment(),
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ToolFault("the expression takes too long; use a simpler one") from error
    if done.returncode:
        raise ToolFault(f"grep failed: {done.stderr.strip().splitlines()[-1:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def search(order: Mapping[str, Any]) -> dict[str, Any]:
    """Return matching lines with their context, each once, and whether there were more."""
    pattern = re.compile(order["pattern"], order["flags"])
    folder, left = Path(order["folder"]), order["most"]
    shown: list[tuple[str, int, str, bool]] = []
    for file in walk(Path(order["top"]), folder):
        try:
            lines = decode(file.read_bytes()).lines
        except (ReadingError, OSError):
            continue
        matches = [number for number, line in enumerate(lines) if pattern.search(line)]
        is_cut = len(matches) > left
        taken = set(matches[:left])
        left -= len(taken)
        around = order["context"]
        wanted = {n for m in taken for n in range(max(0, m - around), min(len(lines), m + around + 1))}
        name = file.relative_to(folder).as_posix()
        shown.extend((name, n + 1, lines[n], n in taken) for n in sorted(wanted))
        if is_cut:
            return {"lines": shown, "is_cut": True}
    return {"lines": shown, "is_cut": False}


if __name__ == "__main__":
    json.dump(search(json.load(sys.stdin)), sys.stdout)
