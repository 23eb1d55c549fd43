"""Texts for servers: of many kinds, and as many as wanted."""

VARIED = (
    "hello world",
    "a",
    "How do I boil eggs so that the yolk stays soft?",
    "Überraschung: a naïve café, an Ångström and “quotes” …",
    "def square(x):\n    return x**2  # `code_snake` and CamelCase",
    "| name | value |\n|---|---|\n| alpha | 10 000 € |",
    "https://example.org/a?b=c&d=1#part",
    "Ελληνικά, русский и немного English",
    "東京 is the capital of 日本",
    "🙂 emoji and 👩‍👩‍👧 families",
    "The quick brown fox jumps over the lazy dog. " * 12,
)
"""Without Hangul: llama.cpp takes its syllables apart in another way than the model's own tokeniser."""

_WORDS = (
    "garden stone river engine market winter letter copper bridge signal harvest mirror orange thunder "
    "pocket silver velvet candle meadow anchor basket cousin desert fabric guitar hammer island jacket"
).split()


def numbered(count: int, longest: int = 48) -> list[str]:
    """Return so many different texts of 1 to ``longest`` words, short and long ones mixed."""
    made = []
    for number in range(count):
        length = 1 + number * 37 % longest
        words = [_WORDS[(number * 7 + at * (1 + number % 11)) % len(_WORDS)] for at in range(length)]
        made.append(f"{number}: {' '.join(words)}")
    return made


def of_tokens(count: int) -> str:
    """Return a text of exactly so many tokens of BERT's vocabulary, the two special ones not counted."""
    return " ".join(_WORDS[at % len(_WORDS)] for at in range(count))
