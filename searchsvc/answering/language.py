"""A rough guess whether a text is English: enough to advise, not to decide."""

import re

_WORD = re.compile(r"[^\W\d_]+")
_MIN_WORDS = 20
_MIN_SHARE = 0.15
_ENGLISH = frozenset(
    """a an and are as at be by for from has how if in is it not of on or that the this to was when with
    you""".split()
)


def is_english(text: str) -> bool:
    """Tell whether common English words make up enough of a text; short texts get the benefit of doubt."""
    found: list[str] = _WORD.findall(text.lower())
    if len(found) < _MIN_WORDS:
        return sum(word.isascii() for word in found) >= len(found) / 2
    common = sum(word in _ENGLISH for word in found)
    return common >= _MIN_SHARE * len(found)
