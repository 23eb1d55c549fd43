"""The YAML block at the head of a note -> typed, JSON-safe properties.

YAML 1.2 core schema (https://yaml.org/spec/1.2.2/#103-core-schema): ``no`` and ``2026-05-26`` are
strings. No tags, no code, and aliases may not blow the value up.
"""

import math
import re
from dataclasses import dataclass, field
from typing import Any

import yaml

_MAX_BYTES = 100_000
_MAX_NODES = 10_000
_MAX_DEPTH = 50
_OPENING = re.compile(r"---[ \t]*")
_CLOSING = re.compile(r"(---|\.\.\.)[ \t]*")
_FIRST_KEY = re.compile(r"\s*[^\s#][^:]*:(\s|$)")
_CORE = "tag:yaml.org,2002:"


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """The properties of a note."""

    lines: int = 0
    """How many lines the block takes, its fences included; 0 when there is none."""
    properties: dict[str, Any] = field(default_factory=dict)
    """JSON-safe; empty when the block cannot be read."""
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
    matter when it looks like properties: it costs the properties, nothing else.
    """
    if not lines or not _OPENING.fullmatch(lines[0]):
        return FrontMatter()
    end = next((i for i in range(1, len(lines)) if _CLOSING.fullmatch(lines[i])), None)
    if end is None:
        return FrontMatter()
    source = "\n".join(lines[1:end])
    try:
        properties, problem = _parse(source)
    except yaml.YAMLError as error:
        if not any(_FIRST_KEY.match(line) for line in lines[1:end] if line.strip()):
            return FrontMatter()
        return FrontMatter(lines=end + 1, problem=f"front matter is not read: {_explain(error)}")
    if properties is None:
        return FrontMatter()
    return FrontMatter(lines=end + 1, properties=properties, problem=problem)


def _parse(source: str) -> tuple[dict[str, Any] | None, str]:
    """Return the mapping (none when the value is of another type) and a remark."""
    if len(source) > _MAX_BYTES:
        raise yaml.YAMLError(f"{len(source)} characters, at most {_MAX_BYTES} are read")
    loader = _CoreLoader(source)
    try:
        node = loader.get_single_node()
    except RecursionError as error:
        raise yaml.YAMLError("nested too deeply") from error
    finally:
        loader.dispose()
    if node is None or (isinstance(node, yaml.ScalarNode) and node.tag == f"{_CORE}null"):
        return {}, ""
    if not isinstance(node, yaml.MappingNode):
        return None, ""
    builder = _Builder()
    properties = builder.build(node, 0)
    twice = f"front matter has duplicate keys: {', '.join(builder.duplicates)}; the last one counts"
    return properties, twice if builder.duplicates else ""


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
            key = key_node.value
            if key in result:
                self.duplicates.append(key)
            result[key] = self.build(value_node, depth + 1)
        return result


def _scalar(node: yaml.ScalarNode) -> Any:
    kind, text = node.tag.removeprefix(_CORE), node.value
    if kind == "str":
        return text
    if kind == "null":
        return None
    if kind == "bool":
        return text.lower() == "true"
    try:
        if kind == "int":
            return int(text, 0) if text[:2] in ("0o", "0x") else int(text)
        if kind == "float":
            number = float(re.sub(r"\.(?=inf|nan)", "", text, flags=re.IGNORECASE))
            return number if math.isfinite(number) else text
    except ValueError as error:
        raise yaml.YAMLError(f"{kind} value is out of range") from error
    raise yaml.YAMLError(f"tag {node.tag} is not one of the core schema")


def _explain(error: yaml.YAMLError) -> str:
    """Say what is wrong and on which line of the file, without quoting the note."""
    mark = getattr(error, "problem_mark", None)
    if mark is None:
        return str(error)
    return f"line {mark.line + 2}: {getattr(error, 'problem', None) or 'bad YAML'}"


def text_list(value: Any, *, split_commas: bool = False) -> list[str]:
    """Read a property that may be one value, a list or a comma-separated line."""
    if value is None or isinstance(value, bool | dict):
        return []
    if isinstance(value, list):
        return [text for item in value for text in text_list(item)]
    text = str(value)
    parts = re.split(r"[,\s]+" if split_commas else r"(?!)", text)
    return [part.strip() for part in parts if part.strip()]
