"""Text -> lexical terms, the same way for index and query; and text -> its cost against a budget.

Terms: compatibility forms and case folded, accents taken off, identifiers kept whole and in parts,
scripts without blanks (Chinese, Japanese, Korean, Thai, …) as overlapping pairs of characters, endings
cut by the Snowball stemmer of the script (English for Latin letters), and the Arabic article.
"""

import math
import re
import unicodedata
from collections.abc import Callable, Sequence
from html import unescape

_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005\u3007\u3040-\u30ff\u31f0-\u31ff" \
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af\u1100-\u11ff\U00020000-\U0003ffff"  # fmt: skip
_MARK_BLOCKS = ((0x300, 0x2000), (0x2CE0, 0x3100), (0xA660, 0xAC00), (0xFB1E, 0xFE30), (0x10A00, 0x11F00))


def _mark_ranges() -> str:
    """Return the combining marks as ranges of a character class; single characters match far slower."""
    marks = [
        code
        for start, stop in _MARK_BLOCKS
        for code in range(start, stop)
        if unicodedata.category(chr(code))[0] == "M"
    ]
    starts = [code for before, code in zip([0, *marks], marks, strict=False) if code != before + 1]
    stops = [code for code, after in zip(marks, [*marks[1:], 0], strict=True) if after != code + 1]
    return "".join(f"{chr(start)}-{chr(stop)}" for start, stop in zip(starts, stops, strict=True))


_EMOJI = "\u2300-\u23ff\u25a0-\u27bf\u2b00-\u2bff\U0001f000-\U0001f3fa\U0001f400-\U0001faff"
_SIGNS = r"\+\+(?![+A-Za-z_])|\#(?![+\#\w])"
_CHUNK_PATTERN = (
    r"(?:(?<![\w.])\.)?W+(?:[.\-'’]W+|(?<=\d)[:/](?=\d)W+|(?<=\d),\d{3}(?!\w)"
    r"|(?<=\d)(?<!,\d)(?<!,\d\d)(?<!,\d{3}),\d{1,2}(?!\w|[,.:/'’\-]\w)"
    r"|(?<=[A-Za-z])&[A-Za-z]{1,3}(?![\w;]))*(?:SIGNS)?"
).replace("SIGNS", _SIGNS)
_ASCII_CHUNK = re.compile(_CHUNK_PATTERN.replace("W", r"\w"), re.ASCII)
_CHUNK_OR_EMOJI = re.compile(_CHUNK_PATTERN.replace("W", f"[\\w{_mark_ranges()}]") + f"|[{_EMOJI}]")
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u0640\u180b-\u180f\u200b\u200d-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
    "\U000e0000-\U000e01ef]"
)
"""Soft hyphens, joiners, direction marks and the like, which a reader does not see inside a word."""
_HYPHEN = re.compile("[\u2010\u2011\u2212\u200c]")
"""Persian joins parts of a word by U+200C as English does by a hyphen."""
_WORD = re.compile(r"\w+")
_UNSPACED_RUN = re.compile(f"[{_UNSPACED}]+")
_SCRIPT_RUN = re.compile(f"[{_UNSPACED}]+|[^{_UNSPACED}]+")
_SEPARATOR = re.compile(r"[.\-'’_:/+#,&]+")
_LETTERS_SEPARATOR = re.compile(r"(?<=\D)[.\-'’_]+|[.\-'’_]+(?=\D)|[,&]")
_HUMP = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_SIGNED_NAME = re.compile(r"(?:.*[.\-_:/])?(\w{1,2}(?:\+\+|#))")
_VERSION = re.compile(r"[vV](\d+(?:\.\d+)+)")
_JOINED = re.compile("[:/]")
_TIMESTAMP = re.compile(r"(\d{4}-\d{2}-\d{2})T(\d{2}:\d{2}(?::\d{2})?)")
_GROUPED_DIGITS = re.compile(r"\d+(?:-\d+)+")
_THOUSANDS = re.compile(r"\d{1,3}(?:(?:[,_'’]\d{3})+|(?:\.\d{3}){2}(?!\.))(?![\d_])")
"""A large number with signs between its digits; one dot may be a decimal's, three an address's."""
_DECIMAL = re.compile(r"(\d+|\d{1,3}(?:\.\d{3})+),(\d{1,2})")
"""With a comma, as most of Europe writes it."""
_DECIMAL_END = re.compile(r",\d{1,2}$")
_NO_DIGIT = re.compile(r"\D")
_MIN_GROUPED = 7
"""Digits of a date, a telephone number or an ISBN, which are also written without hyphens."""
_AFTER_DIGIT = re.compile("(?<=\\d)(?=[\u00bc-\u00be\u2150-\u215e\u2189])")
"""Where a fraction of one character follows a whole number: compatibility forms would join their digits."""
_ENTITY = re.compile(r"&(?:[A-Za-z][A-Za-z0-9]{1,31}|#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6});")
_DATA_URI = re.compile(r"data:[\w.+/-]{1,100};base64,[A-Za-z0-9+/=]+")
_ACCENT = re.compile("(?!(?<=\u0438)\u0306)[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670]")
"""Not the breve of the Cyrillic short i, a letter of its own that endings are told by."""
_LETTERS = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ħ": "h", "ŧ": "t", "ı": "i", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe"}
    | {"ک": "ك", "ی": "ي", "ى": "ي", "ة": "ه", "ٱ": "ا"}
)
"""Letters that Unicode does not take apart and people type without their strokes; Arabic and Persian ones
that stand for each other."""
_OTHER_DIGIT = re.compile(r"[^\D0-9]")
_ARABIC_ARTICLE = re.compile(r"(?:[وبكف]?ال|لل)(?=\w{3})")
"""With the conjunctions and prepositions that are written together with it."""
_SCRIPT_STEMMERS = (
    (0x370, 0x400, "greek"),
    (0x400, 0x530, "russian"),
    (0x900, 0x980, "hindi"),
    (0xB80, 0xC00, "tamil"),
)
"""First code of a script, the one after its last, and the Snowball algorithm that cuts its endings; other
languages of these scripts share enough endings to gain by it."""
_LEFT_SIGNS = "()[]{}<>\"'`*,;:!?=/|~$%@^-\\"
_RIGHT_SIGNS = _LEFT_SIGNS + "."
"""Around a word of letters these are never part of it; a dot before one is, as in ``.env``."""
_MAX_WORD = 80
_MAX_REMEMBERED = 32
_MAX_SEEN = 500_000
_MAX_QUERY = 10_000
_BETWEEN_DIGITS = re.compile(r"(?<=\d) (?=\d)")
_PLAIN_WORD = re.compile(rf"[^\W_{_UNSPACED}]+")

_DIGITS = b"0123456789"
_WIDE = bytes(range(128, 256))
_SIGN_BYTES = bytes(code for code in range(128) if not (chr(code).isalnum() or chr(code).isspace()))
_DIGIT = re.compile(r"[0-9]")
_MIN_OPAQUE = 24
_HEX = re.compile(r"[0-9a-f]{24,}")
_RUN = re.compile(r"[A-Za-z0-9+=_-]{24,}")
"""Characters that opaque strings are made of, as many as make one."""

VERSION = 5
"""Raised with every change of the rules, so that indexes made by older ones are rebuilt."""

STOP_WORDS = frozenset(
    """a an and any are as at be been but by can could do does did for from had has have how i if in into
    is it its may me my no not of on or our should so some such than that the their them then there these
    they this those to too us was we were what when where which who why will with would you your""".split()
)
"""English words that carry no topic. Those of other languages are dropped from questions only, by
languages.FUNCTION_WORDS, since many of them mean something in English."""


class Tokenizer:
    """Splits text into terms; remembers every word it has seen, since most words repeat."""

    def __init__(self, *, stemming: bool = True) -> None:
        self._stem = _stem_of_script() if stemming else str
        self._seen: dict[str, tuple[str, ...]] = {}
        self.settings = settings_of(stemming=stemming)
        """Changes whenever the same text would give other terms."""

    def terms(self, text: str) -> list[str]:
        """Return the terms of a text to be indexed, in order, repetitions included."""
        return [term for word in words(text) for term in self.terms_of_word(word)]

    def terms_of_word(self, word: str) -> tuple[str, ...]:
        """Return the terms of one of the ``words`` of a text."""
        found = self._seen.get(word)
        if found is None:
            found = self._analyse(word, query=False)
            if len(self._seen) >= _MAX_SEEN:
                self._seen.clear()
            if len(word) <= _MAX_REMEMBERED:
                self._seen[word] = found
        return found

    def topic_terms(self, text: str) -> list[str]:
        """Return the terms of a text without stop words.

        No word spans a blank, so those of its pieces between blanks are the terms of a text.
        """
        return [term for term in self.terms(text) if term not in STOP_WORDS]

    def query_terms(self, text: str) -> list[tuple[str, str]]:
        """Return the terms of a question in order, each with the word it was written as.

        Stop words are left out unless there is nothing else. A single character of a script without
        blanks is a term of its own; it means every pair that begins with it, and, since runs are indexed
        with their last character alone, any place at all.
        """
        terms = [
            (term, term if is_unspaced(term) else word)
            for word in words(text[:_MAX_QUERY])
            for term in (self.terms_of_word(word) if word.isascii() else self._analyse(word, query=True))
        ]
        return [pair for pair in terms if pair[0] not in STOP_WORDS] or terms

    def written(self, term: str, word: str) -> str:
        """Return the part of a word of a question that one of its terms stands for, as it was written."""
        if word.isascii() and word.isalpha() and word.islower():
            return word
        for run in _SCRIPT_RUN.findall(word.removesuffix("'s").removesuffix("’s")):
            pieces = _SEPARATOR.split(run)
            parts: list[str] = [*pieces, *(hump for piece in pieces for hump in _HUMP.findall(piece)), run]
            for part in filter(None, parts):
                if self.terms_of_word(part)[-1:] == (term,):
                    return part
        return term

    def joined_terms(self, text: str) -> list[str]:
        """Return the names that two or three neighbouring words would make: ``dec 0054`` -> ``dec0054``.

        Numbers side by side also make one with a hyphen between them, which names keep there.
        """
        text = unicodedata.normalize("NFKC", text[:_MAX_QUERY])
        found = list(_PLAIN_WORD.finditer(text))
        folded = [fold(match.group()) for match in found]
        joined: list[str] = []
        for first in range(len(found)):
            if folded[first] in STOP_WORDS:
                continue
            for last in range(first + 1, min(first + 3, len(found))):
                between = text[found[last - 1].end() : found[last].start()]
                if not between.isspace() or folded[last] in STOP_WORDS:
                    break
                parts = folded[first : last + 1]
                hyphened = _BETWEEN_DIGITS.sub("-", " ".join(parts)).replace(" ", "")
                joined += dict.fromkeys(map(self._stem, ("".join(parts), hyphened)))
        return joined

    def _analyse(self, chunk: str, *, query: bool) -> tuple[str, ...]:
        chunk = chunk.removesuffix("'s").removesuffix("’s")
        if chunk.isascii():
            return self._words(chunk)
        chunk = _OTHER_DIGIT.sub(lambda digit: str(unicodedata.decimal(digit[0])), chunk)
        if not _UNSPACED_RUN.search(chunk):
            return self._words(chunk)
        terms: list[str] = []
        for run in _SCRIPT_RUN.findall(chunk):
            if _UNSPACED_RUN.match(run):
                terms += _pairs(run, last=not query)
            elif _WORD.search(run):
                terms += self._words(run.strip(".-'’:/"))
        return tuple(terms)

    def _words(self, chunk: str) -> tuple[str, ...]:
        """Return the parts of a chunk and, when it has several, the whole.

        Of a chunk too long to be a word only the parts count, cut to a sensible length.
        """
        if len(chunk) > _MAX_WORD:
            return tuple(t for piece in _SEPARATOR.split(chunk) for t in self._words(piece[:_MAX_WORD]))
        if chunk.isalpha() and chunk.islower():
            return (self._stem(fold(chunk)),)
        stamp = _TIMESTAMP.match(chunk) if ":" in chunk else None
        if stamp:
            pieces = (*map(self._words, stamp.groups()), (fold(chunk),))
            return tuple(dict.fromkeys(term for terms in pieces for term in terms))
        end = _DECIMAL_END.search(chunk) if "," in chunk else None
        if end and not _DECIMAL.fullmatch(chunk):
            return self._words(chunk[: end.start()]) + self._words(chunk[end.start() + 1 :])
        signed = _SIGNED_NAME.fullmatch(chunk) if chunk.endswith(("+", "#")) else None
        if signed and signed.group(1) == chunk:
            return (fold(chunk),)
        parts: list[str] = []
        for piece in _SEPARATOR.split(chunk):
            humps = _HUMP.findall(piece) if piece.isascii() else [piece]
            if len(humps) > 1 and sum(map(len, humps)) == len(piece) and not _is_code(piece):
                parts += [hump for hump in humps if len(hump) > 1] or [piece]
            else:
                parts.append(piece)
        if not any(parts):
            return ()
        parts += _inner_wholes(chunk)
        if signed:
            parts.append(signed.group(1))
        whole = chunk if chunk[0] == "." else _whole(chunk)
        folded = dict.fromkeys(self._stem(fold(term)) for term in [*parts, whole])
        return tuple(term for term in folded if term)


def settings_of(*, stemming: bool) -> str:
    """Return the settings of a tokenizer without making one."""
    return f"{VERSION}{'+english' if stemming else ''}"


def is_single_unspaced(term: str) -> bool:
    """Tell whether a term is one character of a script without blanks."""
    return len(term) == 1 and bool(_UNSPACED_RUN.match(term))


def is_unspaced(term: str) -> bool:
    """Tell whether a term is of a script without blanks, such as Chinese."""
    return bool(_UNSPACED_RUN.match(term))


def unspaced_runs(text: str) -> list[str]:
    """Return what a question says in scripts without blanks: the runs of which its terms are pairs."""
    if text.isascii():
        return []
    return [run for word in words(text[:_MAX_QUERY]) for run in _UNSPACED_RUN.findall(word)]


def bare_word(piece: str) -> str:
    """Return the only word of a piece of text without blanks, less the signs around it; often empty.

    Told of plain ASCII letters only; ``words`` knows of all others.
    """
    word = piece.lstrip(_LEFT_SIGNS).rstrip(_RIGHT_SIGNS)
    return word if word.isascii() and word.isalpha() else ""


def words(text: str) -> list[str]:
    """Return the words of a text as written, names and numbers with signs in them whole."""
    if "base64," in text:
        text = _DATA_URI.sub(" ", text)
    if "&" in text and ";" in text:
        text = _ENTITY.sub(lambda found: unescape(found.group()), text)
    if text.isascii():
        return _ASCII_CHUNK.findall(text)
    text = _INVISIBLE.sub("", text)
    folded = unicodedata.normalize("NFKC", text)
    if "\u2044" in folded:
        folded = unicodedata.normalize("NFKC", _AFTER_DIGIT.sub(" ", text)).replace("\u2044", "/")
    return _CHUNK_OR_EMOJI.findall(_HYPHEN.sub("-", folded).replace("\u02bc", "'"))


def _whole(chunk: str) -> str:
    """Return a name of several parts as one term; dots and hyphens between digits keep their meaning."""
    decimal = _DECIMAL.fullmatch(chunk) if "," in chunk else None
    if decimal:
        return f"{decimal[1].replace('.', '')}.{decimal[2]}"
    return _LETTERS_SEPARATOR.sub("", chunk.rstrip("+#"))


def _inner_wholes(chunk: str) -> list[str]:
    """Return the names inside a chunk: the address of ``10.0.0.1:80``, the number of ``v1.2.3``.

    Of digits in groups it is all of them: ``20240501`` for ``2024-05-01``, ``1299`` for ``1,299.99``.
    """
    inner = [_whole(part) for part in _JOINED.split(chunk)] if _JOINED.search(chunk) else []
    if len(chunk) > _MIN_GROUPED and _GROUPED_DIGITS.fullmatch(chunk):
        digits = chunk.replace("-", "")
        inner += [digits] if len(digits) >= _MIN_GROUPED else []
    thousands = _THOUSANDS.match(chunk)
    if thousands:
        inner.append(_NO_DIGIT.sub("", thousands.group()))
    version = _VERSION.match(chunk)
    return [*inner, version.group(1).split(".")[0], version.group(1)] if version else inner


def _is_code(piece: str) -> bool:
    """Tell product codes such as ``HCA060T`` from names such as ``OAuth2``: digits between capitals."""
    return piece.isupper() and any(character.isdigit() for character in piece)


def _pairs(run: str, *, last: bool) -> list[str]:
    if len(run) == 1:
        return [run]
    pairs = [run[i : i + 2] for i in range(len(run) - 1)]
    return [*pairs, run[-1]] if last else pairs


def fold(text: str) -> str:
    """Fold case and take accents off; marks that are letters of their own in Indic scripts stay."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text.casefold().translate(_LETTERS))
    return unicodedata.normalize("NFC", _ACCENT.sub("", decomposed))


def _stem_of_script() -> Callable[[str], str]:
    """Return a function that cuts the ending of a folded word, by the script of its first letter."""
    import Stemmer

    english = Stemmer.Stemmer("english", 0).stemWord
    others = [(start, stop, Stemmer.Stemmer(name, 0).stemWord) for start, stop, name in _SCRIPT_STEMMERS]

    def apply(word: str) -> str:
        if word.isascii():
            return english(word) if len(word) > 2 and word.isalpha() else word
        code = ord(word[0])
        stem = next((stem for start, stop, stem in others if start <= code < stop), None)
        if stem is not None:
            return str(stem(word))
        article = _ARABIC_ARTICLE.match(word)
        return word[article.end() :] if article else word

    return apply


def cost(text: str, pieces: Sequence[str] | None = None) -> int:
    """Estimate how many tokens a language model counts for a text, erring high.

    ``pieces`` are what stands between its blanks, where the caller has split it already. Fitted on prose,
    code and Chinese against the o200k and cl100k vocabularies: letters and blanks at 4.4 a token, digits at
    2, punctuation at 1.6, other scripts at 2.6 bytes, opaque strings (hashes, encoded data) at 1.6
    characters.
    """
    data = text.encode("utf-8", "surrogatepass")
    # Deleting bytes and comparing lengths counts them many times faster than matching does.
    digits = len(data) - len(data.translate(None, _DIGITS))
    signs = len(data) - len(data.translate(None, _SIGN_BYTES))
    wide = 0 if text.isascii() else len(data) - len(data.translate(None, _WIDE))
    letters = len(data) - digits - signs - wide
    opaque = 0
    if digits:  # no opaque string is without
        pieces = text.split() if pieces is None else pieces
        opaque = sum(map(_opaque_length, [piece for piece in pieces if len(piece) >= _MIN_OPAQUE]))
    return math.ceil(letters / 4.4 + signs * 0.62 + digits * 0.5 + wide / 2.6 + opaque * 0.4)


def _opaque_length(piece: str) -> int:
    """Return how many characters of a piece of text without blanks belong to opaque strings."""
    length = 0
    for run in _RUN.findall(piece):
        if not run.islower() and _DIGIT.search(run):
            length += len(run)
        else:
            length += sum(len(run) for run in _HEX.findall(run) if _DIGIT.search(run))
    return length
