"""Which language a text is in, by its function words and its script: enough to weigh evidence, not to label.

Used to drop the function words of a question's own language, and to know how much of a corpus is in the
language of a question, since words cannot match across languages and vectors can.
"""

import re
from collections import Counter
from functools import lru_cache

from searchsvc.tokens import fold

_FUNCTION_WORDS_TEXT = {
    "en": """the of and to in is was for that with as are on by what how which who when where why does did do
        can i my it this from not be or an a at if you your""",
    "de": """der die das den dem des ein eine einer eines einem einen und oder aber nicht ist sind war waren
        wird werden wurde wurden hat haben hatte kann können konnte sich auf aus bei für im ins mit nach von
        vom vor zu zum zur über unter durch als auch am es er sie wir ihr was wer wie wo wann warum welche
        welcher welches welchen welchem wenn dass daß man um so nur noch viele viel""",
    "es": """el la los las un una unos unas y o pero no es son era eran fue fueron ser está están ha han había
        se que qué quién quiénes cuál cuáles cómo dónde cuándo cuánto cuántos cuántas de del al a en con por
        para sin sobre entre su sus lo le les más como si este esta esto estos estas ese esa""",
    "fr": """le la les un une des et ou mais ne pas est sont était étaient être a ont avait se que qui quoi
        quel quelle quels quelles comment où quand pourquoi de du au aux à en dans avec par pour sans sur
        entre son sa ses ce cette ces il elle ils elles on nous vous plus comme si d l qu""",
    "it": """il lo la i gli le un uno una e o ma non è sono era erano essere ha hanno aveva si che chi cosa
        quale quali come dove quando perché di del della dei delle al alla a in con per senza su tra fra suo
        sua questo questa più da dal dalla nel nella""",
    "pt": """o a os as um uma uns umas e ou mas não é são era eram foi foram ser está estão tem há se que quem
        qual quais como onde quando porque de do da dos das ao à em no na nos nas com por para sem sobre
        entre seu sua mais este esta isto""",
    "nl": """de het een en of maar niet is zijn was waren wordt worden werd heeft hebben had kan zich op uit
        bij voor in met naar van te over onder door als ook aan er hij zij wij wat wie hoe waar wanneer
        waarom welke dat dit deze die om""",
}
FUNCTION_WORDS = {
    code: frozenset(fold(word) for word in text.split()) for code, text in _FUNCTION_WORDS_TEXT.items()
}
"""Function words by ISO 639-1 code, folded as terms are."""

_SPEAKERS: dict[str, tuple[str, ...]] = {}
"""Languages of each function word, as written and folded, in lower case."""
for _code, _text in _FUNCTION_WORDS_TEXT.items():
    for _word in {spelled for word in _text.split() for spelled in (word, fold(word))}:
        _SPEAKERS[_word] = (*_SPEAKERS.get(_word, ()), _code)

_ASCII_SPEAKERS = {word.encode(): codes for word, codes in _SPEAKERS.items() if word.isascii()}

CODES = ("", "en", "de", "es", "fr", "it", "pt", "nl", "zh", "ja", "ko",
         "ru", "uk", "el", "he", "ar", "fa", "hi", "th")  # fmt: skip
"""Languages that are told apart; a section stores the place of its own, 0 for unknown."""

_WORD = re.compile(r"[^\W\d_]+")
_ASCII_LETTERS = bytes(
    ord(chr(code).lower()) if chr(code).isalpha() and code < 128 else 32 for code in range(256)
)
"""Makes letters lower and puts blanks for the rest: to split there takes half the time of matching words."""
_NO_ASCII_LETTERS = bytes(code for code in range(128) if not chr(code).isalpha())
_IDEOGRAPH = re.compile(
    "[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af\U00020000-\U0002ffff]"
)
_KANA = re.compile("[\u3040-\u30ff]")
_HANGUL = re.compile("[\uac00-\ud7af]")
_LATIN = re.compile("[A-Za-z\u00aa\u00ba\u00c0-\u024f\u1e00-\u1eff]")
_SCRIPTS = {
    "ru": re.compile("[\u0400-\u052f]"),
    "el": re.compile("[\u0370-\u03ff\u1f00-\u1fff]"),
    "he": re.compile("[\u0590-\u05ff]"),
    "ar": re.compile("[\u0600-\u06ff\u0750-\u077f]"),
    "hi": re.compile("[\u0900-\u097f]"),
    "th": re.compile("[\u0e00-\u0e7f]"),
}
"""Letters by the language that a script most often stands for."""
_OWN_LETTERS = {"ru": ("uk", re.compile("[іїєґ]")), "ar": ("fa", re.compile("[پچژگ]"))}
"""Of such a language, another one in the same script and the letters that only that has."""
_SAMPLE_CHARACTERS = 600
_MIN_WORDS = 2
_MIN_SCRIPT_SHARE = 0.15
_CLEARLY = 1.5


def language_of(text: str) -> str:
    """Return the code of a text's language, judged by its beginning; empty when there is no telling."""
    text = text[:_SAMPLE_CHARACTERS]
    script = "" if text.isascii() else _by_script(text)
    if script:
        return script
    counts = _counts(text)
    best = max(counts, key=lambda code: (counts[code], code == "en"))
    return best if counts[best] >= _MIN_WORDS else ""


@lru_cache(maxsize=64)
def language_of_question(text: str) -> str:
    """Return the code of a question's language; one in Latin script is English unless clearly another."""
    code = language_of(text)
    if code in FUNCTION_WORDS and code != "en":
        counts = _counts(text[:_SAMPLE_CHARACTERS])
        if counts[code] <= _CLEARLY * counts["en"]:
            return "en"
    return code


def ideograph_share(text: str) -> float:
    """Return the share of a text's letters that are Chinese, Japanese or Korean."""
    letters = sum(map(len, _WORD.findall(text)))
    return len(_IDEOGRAPH.findall(text)) / letters if letters else 0.0


def foreign_share(text: str) -> float:
    """Return the share of a text's letters that are not Latin."""
    if text.isascii():
        return 0.0
    letters = sum(map(len, _WORD.findall(text)))
    return 1 - min(len(_LATIN.findall(text)) / letters, 1.0) if letters else 0.0


def _by_script(text: str) -> str:
    if _is_mostly_ascii(text) or foreign_share(text) <= _MIN_SCRIPT_SHARE:
        return ""
    ideographs = len(_IDEOGRAPH.findall(text))
    counts = {code: len(letters.findall(text)) for code, letters in _SCRIPTS.items()}
    best = max(counts, key=lambda code: counts[code])
    if ideographs >= max(counts[best], _MIN_WORDS):
        if 2 * len(_HANGUL.findall(text)) > ideographs:
            return "ko"
        return "ja" if 8 * len(_KANA.findall(text)) > ideographs else "zh"
    if counts[best] < _MIN_WORDS:
        return ""
    other, own = _OWN_LETTERS.get(best, ("", None))
    return other if own and own.search(text.lower()) else best


def _is_mostly_ascii(text: str) -> bool:
    """Tell quickly that foreign letters would be too few even if all that is not ASCII were such."""
    plain = text.encode("ascii", "ignore")
    others, letters = len(text) - len(plain), len(plain.translate(None, _NO_ASCII_LETTERS))
    return others < _MIN_SCRIPT_SHARE * (letters + others)


def _counts(text: str) -> dict[str, int]:
    counts = dict.fromkeys(FUNCTION_WORDS, 0)
    if text.isascii():
        speakers = map(_ASCII_SPEAKERS.get, text.encode().translate(_ASCII_LETTERS).split())
    else:
        speakers = map(_SPEAKERS.get, _WORD.findall(text.lower()))
    for codes, count in Counter(filter(None, speakers)).items():
        for code in codes:
            counts[code] += count
    return counts
