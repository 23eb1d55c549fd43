"""Names of models that a server has, for those who asked for one it has not."""

from collections.abc import Iterable
from difflib import get_close_matches

MAX_NAMES = 5
MAX_LENGTH = 100


def close_names(wanted: str, names: Iterable[str]) -> str:
    """Return a clause with the names closest to the one wanted, or the first ones, or that there is none."""
    clean = [
        "".join(sign for sign in name if sign.isprintable())[:MAX_LENGTH] for name in dict.fromkeys(names)
    ]
    if not clean:
        return "it has no embedding model"
    lower = {name.lower(): name for name in reversed(clean)}
    holding = [name for name in clean if wanted.lower() in name.lower()]
    close = [lower[name] for name in get_close_matches(wanted.lower(), lower, MAX_NAMES, 0.5)]
    shown = list(dict.fromkeys(holding + close))[:MAX_NAMES] or clean[:MAX_NAMES]
    return f"it has {', '.join(shown)}"
