"""The block at the head of a note -> typed, JSON-safe properties.

Between lines of ``---`` it is YAML, between lines of ``+++`` TOML. YAML is read by the core schema of 1.2
(https://yaml.org/spec/1.2.2/#103-core-schema): ``no`` and ``2026-05-26`` are strings. No tags, no code,
and aliases may not blow the value up.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from searchsvc.reading.toml_matter import read_toml

_MAX_BYTES = 100_000
_MAX_NODES = 10_000
_MAX_DEPTH = 50
_MAX_NAMED = 5
_MAX_DIGITS = 300
"""A longer number is kept as text."""
_PROTECTED = {0x85: "\ue085", 0x2028: "\ue028", 0x2029: "\ue029"}
"""Line ends for libyaml, as in YAML 1.1, but neither for YAML 1.2 nor for Markdown."""
_UNPROTECTED = {0: "\ufffd"} | {ord(stand_in): chr(code) for code, stand_in in _PROTECTED.items()}
_OPENING = re.compile(r"(?:---|\+\+\+)[ \t]*")
_CLOSING = {"-": re.compile(r"(?:---|\.\.\.)[ \t]*"), "+": re.compile(r"\+\+\+[ \t]*")}
_FIRST_KEY = {"-": re.compile(r"\s*[^\s#][^:]*:(\s|$)"), "+": re.compile(r"\s*[\w.\"'-]+\s*=")}
_CORE = "tag:yaml.org,2002:"


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """The properties of a note."""

    lines: int = 0
    """How many lines the block takes, its fences included; 0 when there is none."""
    properties: dict[str, Any] = field(default_factory=dict)
    """JSON-safe; empty when the block cannot be read."""
    texts: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """By property, its value or the items of its list as they are written (``1.10``), blanks folded at the
    ends; only those that have any, and neither inner mappings nor a bare true or false."""
    problem: str = ""
    """What was wrong with the block; empty when nothing was."""


class _CoreLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Resolves plain scalars by the YAML 1.2 core schema instead of YAML 1.1."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}


def _resolve(kind: str, pattern: str, first: str) -> None:
    _CoreLoader.add_implicit_resolver(f"{_CORE}{kind}", re.compile(f"^(?:{pattern})$"), list(first))


_resolve("bool", "true|True|TRUE|false|False|FALSE", "tTfF")
_resolve("null", "~|null|Null|NULL|", "~nN\0")
_CoreLoader.add_implicit_resolver(f"{_CORE}null", re.compile("^$"), [""])
_resolve("int", "[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789")
_resolve(
    "float",
    r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
    "-+0123456789.",
)


def read_front_matter(lines: tuple[str, ...]) -> FrontMatter:
    """Return the front matter of a note given its lines.

    A block that is no mapping is body text, not front matter. A block with bad YAML stays front
    matter when it looks like properties: it costs the properties, nothing else. After a blank line it
    is taken for text between rules, as Pandoc does.
    """
    if not lines or not _OPENING.fullmatch(lines[0]):
        return FrontMatter()
    kind = lines[0][0]
    end = next((i for i in range(1, len(lines)) if _CLOSING[kind].fullmatch(lines[i])), None)
    if end is None:
        return FrontMatter()
    source = "\n".join(lines[1:end])
    try:
        if len(source) > _MAX_BYTES:
            raise ValueError(f"{len(source)} characters, at most {_MAX_BYTES} are read")
        return _parse(source.translate(_PROTECTED), end + 1) if kind == "-" else _parse_toml(source, end + 1)
    except (yaml.YAMLError, ValueError) as error:
        looks_like_properties = any(_FIRST_KEY[kind].match(line) for line in lines[1:end] if line.strip())
        if not lines[1].strip() or not looks_like_properties:
            return FrontMatter()
        return _unread(end + 1, error)


def _parse(source: str, lines: int) -> FrontMatter:
    """Return the front matter of a block; none when its value is no mapping."""
    loader = _CoreLoader(source)
    try:
        node = loader.get_single_node()
    except RecursionError as error:
        raise yaml.YAMLError("nested too deeply") from error
    finally:
        loader.dispose()
    if node is None or (isinstance(node, yaml.ScalarNode) and node.tag == f"{_CORE}null"):
        return FrontMatter(lines=lines)
    if not isinstance(node, yaml.MappingNode):
        return FrontMatter()
    builder = _Builder()
    try:
        properties = builder.build(node, 0)
    except yaml.YAMLError as error:
        return _unread(lines, error)
    texts = {_clean(key.value): tuple(_texts(value)) for key, value in node.value if not _is_bool(value)}
    twice = sorted(set(builder.duplicates))[:_MAX_NAMED]
    return FrontMatter(
        lines=lines,
        properties=properties,
        texts={key: found for key, found in texts.items() if found},
        problem=f"front matter has duplicate keys: {', '.join(twice)}; the last one counts" if twice else "",
    )


def _parse_toml(source: str, lines: int) -> FrontMatter:
    properties = read_toml(source)
    texts = {key: tuple(_written(value)) for key, value in properties.items() if not isinstance(value, bool)}
    return FrontMatter(lines, properties, {key: found for key, found in texts.items() if found})


def _written(value: Any) -> Iterator[str]:
    """Yield the plain values in a value or in its lists as texts."""
    if isinstance(value, list):
        for item in value:
            yield from _written(item)
    elif not isinstance(value, dict) and str(value).strip():
        yield str(value).lower() if isinstance(value, bool) else str(value).strip()


def _is_bool(node: yaml.Node) -> bool:
    return bool(node.tag == f"{_CORE}bool")


def _texts(node: yaml.Node) -> Iterator[str]:
    """Yield the scalars of a value or of its lists; the builder has bounded their number."""
    if isinstance(node, yaml.ScalarNode):
        if node.tag != f"{_CORE}null" and node.value.strip():
            yield _clean(node.value.strip())
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _texts(item)


def _clean(text: str) -> str:
    return text.translate(_UNPROTECTED)


class _Builder:
    """Turns YAML nodes into plain values, counting every visit so that aliases stay bounded."""

    def __init__(self) -> None:
        self.visits = 0
        self.duplicates: list[str] = []

    def build(self, node: yaml.Node, depth: int) -> Any:
        self.visits += 1
        if self.visits > _MAX_NODES or depth > _MAX_DEPTH:
            raise yaml.YAMLError(f"expands to more than {_MAX_NODES} values or {_MAX_DEPTH} levels")
        if isinstance(node, yaml.ScalarNode):
            return _scalar(node)
        if isinstance(node, yaml.SequenceNode) and node.tag == f"{_CORE}seq":
            return [self.build(item, depth + 1) for item in node.value]
        if isinstance(node, yaml.MappingNode) and node.tag == f"{_CORE}map":
            return self._mapping(node, depth)
        raise yaml.YAMLError(f"tag {node.tag} is not one of the core schema")

    def _mapping(self, node: yaml.MappingNode, depth: int) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise yaml.YAMLError("a key is not a plain value")
            key = _clean(key_node.value)
            if key in result:
                self.duplicates.append(key)
            result[key] = self.build(value_node, depth + 1)
        return result


def _scalar(node: yaml.ScalarNode) -> Any:
    try:
        return _value(node.tag.removeprefix(_CORE), node.value)
    except (ValueError, OverflowError) as error:
        raise yaml.YAMLError("a value is not what its tag says") from error


def _value(kind: str, text: str) -> Any:
    if kind == "str":
        return _clean(text)
    if kind == "null":
        return None
    if kind == "bool" and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if kind == "int" and len(text) <= _MAX_DIGITS:
        return int(text, 0) if text[:2] in ("0o", "0x") else int(text)
    if kind == "float":
        number = float(re.sub(r"\.(?=inf|nan)", "", text, flags=re.IGNORECASE))
        return number if math.isfinite(number) else text
    if kind == "int":
        return text
    raise yaml.YAMLError(f"tag {kind} is not one of the core schema")


def _unread(lines: int, error: Exception) -> FrontMatter:
    return FrontMatter(lines=lines, problem=f"front matter is not read: {_explain(error)}")


def _explain(error: Exception) -> str:
    """Say what is wrong and on which line of the file, without quoting the note."""
    if isinstance(error, yaml.reader.ReaderError):
        return f"a character that YAML does not allow ({error.reason})"
    mark = getattr(error, "problem_mark", None)
    if mark is None:
        return str(error)
    return f"line {mark.line + 2}: {getattr(error, 'problem', None) or 'bad YAML'}"
