"""What get_documents is asked for -> checked selectors."""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from searchsvc.errors import QueryError

_FIELDS = ("doc", "root", "sections", "lines", "pages", "include_images", "include_code")
_ALIASES = {
    "id": "doc",
    "path": "doc",
    "document": "doc",
    "file": "doc",
    "folder": "root",
    "section": "sections",
}
_MAX_SELECTORS = 1_000
_SHOWN = 80


@dataclass(frozen=True, slots=True)
class Selector:
    """A document or a folder of documents, whole or in part."""

    doc: str = ""
    root: str | None = None
    """Folder whose documents are meant; none when ``doc`` is given."""
    sections: tuple[str, ...] = ()
    lines: tuple[int, int] | None = None
    """First and last, 1-based."""
    pages: tuple[int, int] | None = None
    """First and last, of an imported document that has pages."""
    include_images: bool | None = None
    """None for what the whole call says."""
    include_code: bool | None = None


def read_selectors(select: Sequence[Any]) -> list[Selector]:
    """Check what a caller selects; raises ``QueryError`` naming the selector and the reason."""
    if isinstance(select, str | dict):
        select = [select]
    if not select:
        raise QueryError(
            "select is empty; give a list of document ids (from list_documents) or of {doc, sections | lines}"
        )
    if len(select) > _MAX_SELECTORS:
        raise QueryError(f"select has {len(select)} entries, at most {_MAX_SELECTORS} are read in one call")
    return [_selector(item, f"select[{number}]") for number, item in enumerate(select)]


def read_range(value: Any, where: str, unit: str = "lines") -> tuple[int, int]:
    """Check a pair of lines or pages; raises ``QueryError``."""
    is_pair = isinstance(value, list | tuple) and len(value) == 2
    if not is_pair or any(isinstance(n, bool) or not isinstance(n, int) for n in value):
        raise QueryError(f"{where} is {_shown(value)}, expected [first, last] as whole numbers")
    first, last = value
    if first < 1 or last < 1:
        raise QueryError(f"{where} is [{first}, {last}]; {unit} are counted from 1")
    if last < first:
        raise QueryError(f"{where} is reversed: [{first}, {last}]; give [{last}, {first}]")
    return first, last


def _selector(item: Any, where: str) -> Selector:
    if isinstance(item, str):
        if not item.strip():
            raise QueryError(f"{where} is an empty text, expected a document id")
        return Selector(doc=item)
    if not isinstance(item, dict):
        raise QueryError(f"{where} is {_shown(item)}, expected a document id or {{doc, sections | lines}}")
    given: dict[str, Any] = {}
    for name, value in item.items():
        field = name if name in _FIELDS else _ALIASES.get(name, name)
        if field not in _FIELDS:
            near = difflib.get_close_matches(str(name), _FIELDS, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"it takes: {', '.join(_FIELDS)}"
            raise QueryError(f"{where} has no field {_shown(name)}; {hint}")
        if field in given:
            raise QueryError(f"{where} gives {field!r} twice")
        if value is not None:
            given[field] = value
    return _checked(given, where)


def _checked(given: dict[str, Any], where: str) -> Selector:
    if ("doc" in given) == ("root" in given):
        what = "both doc and root" if "doc" in given else "neither doc nor root"
        raise QueryError(f"{where} has {what}, expected one of them")
    for name in ("doc", "root"):
        if name in given and (
            not isinstance(given[name], str) or not given["doc" if name == "doc" else name].strip()
        ):
            raise QueryError(f"{where}.{name} is {_shown(given[name])}, expected text")
    for name in ("include_images", "include_code"):
        if not isinstance(given.get(name, True), bool):
            raise QueryError(f"{where}.{name} is {_shown(given[name])}, expected true or false")
    parts = [name for name in ("sections", "lines", "pages") if name in given]
    if len(parts) > 1:
        raise QueryError(f"{where} has {' and '.join(parts)}, expected at most one of them")
    if "root" in given and parts:
        raise QueryError(f"{where}: {parts[0]} goes with doc, not with root")
    lines = read_range(given["lines"], f"{where}.lines") if "lines" in given else None
    return Selector(
        doc=given.get("doc", ""),
        root=given.get("root"),
        sections=_sections(given["sections"], where) if "sections" in given else (),
        lines=lines,
        pages=read_range(given["pages"], f"{where}.pages", "pages") if "pages" in given else None,
        include_images=given.get("include_images"),
        include_code=given.get("include_code"),
    )


def _sections(value: Any, where: str) -> tuple[str, ...]:
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list | tuple) or not all(isinstance(item, str) for item in items):
        raise QueryError(f"{where}.sections is {_shown(value)}, expected a list of section ids or headings")
    if not items or not all(item.strip() for item in items):
        raise QueryError(
            f"{where}.sections is empty or has an empty entry; leave it out for the whole document"
        )
    return tuple(items)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
