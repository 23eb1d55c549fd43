"""TOML, as Hugo and Zola write it at the head of a note -> plain, JSON-safe values."""

import math
import re
import tomllib
from datetime import date, datetime, time
from typing import Any

_MAX_DEPTH = 50
_MAX_NUMBER = 10**300
"""A larger number is kept as text."""
_PLACE = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")


def read_toml(source: str) -> dict[str, Any]:
    """Return the values of a TOML document; dates and times are ISO 8601 texts.

    ValueError says what is wrong and on which line of the file, of which ``source`` begins on the second.
    """
    try:
        found = tomllib.loads(source)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    except tomllib.TOMLDecodeError as error:
        place = _PLACE.search(str(error))
        line = int(place[1]) if place and place[1] else source.count("\n") + 1
        raise ValueError(f"line {line + 1}: {_PLACE.sub('', str(error))}") from error
    except ValueError as error:  # by Python's limit
        raise ValueError("a number is too long") from error
    return {key: _plain(value, 1) for key, value in found.items()}


def _plain(value: Any, depth: int) -> Any:
    if depth > _MAX_DEPTH:
        raise ValueError(f"nested more than {_MAX_DEPTH} levels deep")
    if isinstance(value, dict):
        return {key: _plain(inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner, depth + 1) for inner in value]
    if isinstance(value, datetime | date | time):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return str(value) if type(value) is int and abs(value) >= _MAX_NUMBER else value
