"""Cutting texts into windows for a model whose tokenizer is elsewhere.

Tokens are guessed, and rather too many than too few: a window that is too long is cut silently by one
server and refused by the next. ASCII and Latin words count one token for four letters, other alphabets
one for two, figures one for two, every sign and every CJK character one, an emoji two.
"""

import re
import unicodedata

from searchsvc.embedding.base import Passage
from searchsvc.embedding.windows import CHARACTERS_PER_TOKEN, clean, cut_windows
from searchsvc.errors import EmbeddingError

MAX_WINDOWS = 64
"""Windows a passage may have; text beyond the last one has no vector (the lexical index has it all)."""
DEFAULT_TOKENS = 256
"""Tokens of a window where nobody says otherwise: one vector blurs over more, and all models take so many."""
SPECIAL_TOKENS = 4
"""Kept free for what a tokenizer puts around a text."""
MIN_ROOM = 16
"""Tokens of text a window must have room for."""

_WIDE = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\ua4cf\uac00-\ud7af\uf900-\ufaff\uff00-\uffef"
_TOKEN = re.compile(
    r"[A-Z]?[a-z\u00c0-\u024f]{1,4}|[A-Z]{1,2}|[0-9]{1,2}"
    rf"|[^\W\d_A-Za-z\u00c0-\u024f{_WIDE}\U00010000-\U0010ffff]{{1,2}}|\S"
)
_JOINER = "\u200d"


def guess_tokens(text: str) -> list[tuple[int, int]]:
    """Return where each guessed token of a text begins and ends, in characters.

    No border lies inside a letter with its marks or an emoji of several characters: a token that belongs
    to the one before begins before that one ends.
    """
    if text.isascii():
        return [found.span() for found in _TOKEN.finditer(text)]
    tokens: list[tuple[int, int]] = []
    for found in _TOKEN.finditer(text):
        start, end = found.span()
        if tokens and end - start == 1 and tokens[-1][1] == start and _continues(text, start):
            start = tokens[-1][0]
        tokens.append((start, end))
        if text[end - 1] > "\uffff":
            tokens.append((start, end))
    return tokens


def _continues(text: str, at: int) -> bool:
    """Tell whether the character there belongs to the one before it."""
    sign, before = text[at], text[at - 1]
    if (
        unicodedata.category(sign)[0] == "M"
        or _JOINER in (sign, before)
        or "\U0001f3fb" <= sign <= "\U0001f3ff"
    ):
        return True
    flags = 0
    while flags <= at and "\U0001f1e6" <= text[at - flags] <= "\U0001f1ff":
        flags += 1
    return flags > 0 and flags % 2 == 0


def count_tokens(text: str) -> int:
    """Return how many tokens a text has at a guess, rather too many."""
    return len(guess_tokens(text))


def shorten(text: str) -> str:
    """Return about the first half of a text, cut between words if one ends near."""
    half = len(text) // 2
    while half > 1 and _continues(text, half):
        half -= 1
    space = text.rfind(" ", half - half // 4, half)
    return text[: space if space > 0 else half].rstrip()


class Cutter:
    """Turns questions and passages into the texts that are sent. Safe to call from several threads."""

    def __init__(
        self, max_tokens: int, prefixes: tuple[str, str] = ("", ""), limit: int = MAX_WINDOWS
    ) -> None:
        """Windows have at most ``max_tokens`` tokens, prefix included, and a passage ``limit`` windows.

        ``prefixes`` stand before every question and every passage. EmbeddingError when they leave no room.
        """
        self._query_prefix, self._passage_prefix = map(clean, prefixes)
        self._limit = limit
        room = max_tokens - SPECIAL_TOKENS
        self._query_room = room - count_tokens(self._query_prefix)
        self._room = room - count_tokens(self._passage_prefix)
        if min(self._query_room, self._room) < MIN_ROOM:
            raise EmbeddingError(
                f"max_tokens is {max_tokens}, which leaves no room for text beside the prefix; expected at "
                f"least {max_tokens - min(self._query_room, self._room) + MIN_ROOM}"
            )

    def query(self, text: str) -> str:
        """Return a question as it is sent, cut to one window; empty when it is blank."""
        head = _first(clean(text).strip(), self._query_room)
        return self._query_prefix + head if head else ""

    def passage(self, passage: Passage) -> list[str]:
        """Return the windows of a passage as they are sent; none when its text is blank.

        Each begins with the context, cut to a third of the window. What is beyond the last window allowed
        is left out.
        """
        text = clean(passage.text).strip()
        if not text:
            return []
        head = _first(clean(passage.context).strip(), self._room // 3)
        room = self._room - count_tokens(head)
        opening = self._passage_prefix + (f"{head}\n" if head else "")
        return [opening + piece for piece in self._cut(text, room)]

    def _cut(self, text: str, room: int) -> list[str]:
        if len(text) <= room // 2:  # not even emoji have more tokens
            return [text]
        text = text[: self._limit * room * CHARACTERS_PER_TOKEN]
        tokens = guess_tokens(text)
        if len(tokens) <= room:
            return [text.strip()]
        spans = cut_windows(tokens, room, self._limit)
        return [text[tokens[start][0] : tokens[end - 1][1]] for start, end in spans if end > start]


def _first(text: str, tokens: int) -> str:
    """Return the beginning of a text that has at most so many tokens."""
    if len(text) <= tokens // 2:
        return text
    text = text[: tokens * CHARACTERS_PER_TOKEN]
    found = guess_tokens(text)
    if len(found) <= tokens:
        return text.strip()
    start, end = cut_windows(found, tokens, 1)[0]
    return text[found[start][0] : found[end - 1][1]]
