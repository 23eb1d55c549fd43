"""From texts to the windows of tokens that a model takes."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from searchsvc.embedding.base import Passage
from searchsvc.errors import EmbeddingError

CHARACTERS_PER_TOKEN = 8
"""No text that fills its windows has more; what is beyond is not even tokenised."""

Offsets = Sequence[tuple[int, int]]
"""Where each token begins and ends in the text, in characters."""


def clean(text: str) -> str:
    """Return the text without NUL and lone surrogates, which no tokeniser takes."""
    text = text.replace("\0", "")
    return text if text.isascii() else text.encode("utf-8", "ignore").decode("utf-8")


def cut_windows(offsets: Offsets, room: int, limit: int) -> list[tuple[int, int]]:
    """Return the ``(start, end)`` token ranges of at most ``limit`` windows of at most ``room`` tokens.

    Neighbours share about an eighth, so that a thought on a border is whole in one of them. Where less
    than a quarter of a window is left, the final window is a full one that overlaps more. No border lies
    inside a character that is several tokens.
    """
    total = len(offsets)
    spans: list[tuple[int, int]] = []
    start = 0
    while start < total and len(spans) < limit:
        if spans and total - spans[-1][1] < room // 4:
            start = _next_border(offsets, max(total - room, spans[-1][0] + 1), spans[-1][1])
        end = _last_border(offsets, start, min(start + room, total))
        spans.append((start, end))
        if end == total:
            break
        start = _next_border(offsets, max(end - room // 8, start + 1), end)
    return spans


def _is_border(offsets: Offsets, at: int) -> bool:
    return at in (0, len(offsets)) or offsets[at][0] >= offsets[at - 1][1]


def _next_border(offsets: Offsets, at: int, last: int) -> int:
    return next((border for border in range(at, last) if _is_border(offsets, border)), last)


def _last_border(offsets: Offsets, start: int, at: int) -> int:
    """Go back to a border, unless the whole window is one character."""
    return next((border for border in range(at, start, -1) if _is_border(offsets, border)), at)


class Windower:
    """Turns questions and passages into lists of token ids. Safe to call from several threads."""

    def __init__(self, file: Path, max_tokens: int, limit: int, prefixes: tuple[str, str] = ("", "")) -> None:
        """Load ``tokenizer.json``.

        Windows have at most ``max_tokens`` tokens, special tokens included; a passage has at most ``limit``
        windows. ``prefixes`` stand before every question and every passage. EmbeddingError when the file
        cannot be read.
        """
        self._tokenizer = load_tokenizer(file)
        self._query_prefix, self._passage_prefix = prefixes
        self._limit = limit
        sample = self._tokenizer.encode("a")
        text_at = [at for at, special in enumerate(sample.special_tokens_mask) if not special]
        self._before = sample.ids[: text_at[0]]
        self._after = sample.ids[text_at[-1] + 1 :]
        self._room = max_tokens - len(self._before) - len(self._after)

    def query(self, text: str) -> list[int]:
        """Return the ids of a question, cut to one window; none when it has no tokens."""
        text = clean(text).strip()
        if not text:
            return []
        ids = self._encode(self._query_prefix + text, self._room).ids
        return [*self._before, *ids[: self._room], *self._after]

    def passage(self, passage: Passage) -> list[list[int]]:
        """Return the ids of each window of a passage; no window when its text is blank.

        Each begins with the context, cut to a third of the window. What is beyond the last window
        allowed is left out.
        """
        text = clean(passage.text).strip()
        if not text:
            return []
        context = (self._passage_prefix + clean(passage.context)).strip()
        head = self._encode(context, self._room).ids[: self._room // 3]
        room = self._room - len(head)
        body = self._encode(text, self._limit * room)
        ids = body.ids
        spans = [(0, len(ids))] if len(ids) <= room else cut_windows(body.offsets, room, self._limit)
        return [[*self._before, *head, *ids[start:end], *self._after] for start, end in spans if end > start]

    def _encode(self, text: str, tokens: int) -> Any:
        return self._tokenizer.encode(text[: tokens * CHARACTERS_PER_TOKEN], add_special_tokens=False)


class TextWindower:
    """Turns questions and passages into texts for a model that tokenises by itself. Safe to share."""

    def __init__(self, offsets: Callable[[str], Offsets], room: int, limit: int) -> None:
        """Cut texts to ``room`` tokens, as ``offsets`` counts them, and a passage into ``limit`` windows."""
        self._offsets = offsets
        self._room = room
        self._limit = limit

    def query(self, text: str) -> str:
        """Return a question cut to one window; empty when it has no tokens."""
        return self._cut(clean(text).strip(), self._room)[0]

    def passage(self, passage: Passage) -> list[str]:
        """Return the windows of a passage, each after its context, cut to a third; none when it is blank."""
        text = clean(passage.text).strip()
        head, taken = self._cut(clean(passage.context).strip(), self._room // 3)
        room = self._room - taken
        text = text[: self._limit * room * CHARACTERS_PER_TOKEN]
        offsets = self._offsets(text)
        if not offsets:
            return []
        if len(offsets) <= room:
            return [_join(head, text)]
        spans = cut_windows(offsets, room, self._limit)
        return [_join(head, text[offsets[start][0] : offsets[end - 1][1]]) for start, end in spans]

    def _cut(self, text: str, tokens: int) -> tuple[str, int]:
        """Return the beginning of a text with so many tokens at most, and how many it has."""
        text = text[: tokens * CHARACTERS_PER_TOKEN]
        offsets = self._offsets(text)
        if len(offsets) <= tokens:
            return (text if offsets else ""), len(offsets)
        return text[: offsets[tokens - 1][1]], tokens


def _join(head: str, window: str) -> str:
    return f"{head}\n{window}" if head else window


def load_tokenizer(file: Path) -> Any:
    """Load a tokenizer file without the padding and truncation that some files ask for."""
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(file))
    except Exception as error:  # the library raises a bare Exception
        raise EmbeddingError(
            f"{file.name} is not a tokenizer file that this version of tokenizers reads; put the file of the "
            "model there, or upgrade tokenizers"
        ) from error
    return plain(tokenizer)


def plain(tokenizer: Any) -> Any:
    """Return the tokenizer, set to take whole texts and to read a special token in one as characters."""
    tokenizer.no_padding()
    tokenizer.no_truncation()
    # A note that quotes "[SEP]" or "</s>" means the characters, not the end of the text.
    tokenizer.encode_special_tokens = True
    return tokenizer
