"""What is known of the families of embedding models that servers run: servers tell none of it.

Every entry is from the model's own card. A family that is not listed gets no prefixes.
"""

import re
from dataclasses import dataclass

_PASSAGES = "Represent this sentence for searching relevant passages: "
_INSTRUCT = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"


@dataclass(frozen=True, slots=True)
class Family:
    """Models that are asked the same way."""

    pattern: str
    """Matches the beginning of a model's base name."""
    query_prefix: str = ""
    """Put before every question, as the models were trained."""
    passage_prefix: str = ""
    """Put before every passage, as the models were trained."""
    languages: tuple[str, ...] = ("*",)
    """ISO 639-1 codes; ``("*",)`` for many."""
    max_tokens: int = 0
    """Tokens a text may have; 0 where models of the family differ."""
    source: str = ""
    """The card that says so."""


_EN = ("en",)

FAMILIES = (
    Family("nomic-embed-text-v2", "search_query: ", "search_document: ", ("*",), 512,
           "nomic-ai/nomic-embed-text-v2-moe"),
    Family("nomic-embed-text", "search_query: ", "search_document: ", _EN, 2048,
           "nomic-ai/nomic-embed-text-v1.5"),
    Family("multilingual-e5-large-instruct", _INSTRUCT.replace("Query:", "Query: "), "", ("*",), 512,
           "intfloat/multilingual-e5-large-instruct"),
    Family("multilingual-e5", "query: ", "passage: ", ("*",), 512, "intfloat/multilingual-e5-base"),
    Family("e5-(?:small|base|large)(?:-v2)?$", "query: ", "passage: ", _EN, 512, "intfloat/e5-base-v2"),
    Family("bge-(?:small|base|large)-en-v1.5", _PASSAGES, "", _EN, 512, "BAAI/bge-base-en-v1.5"),
    Family("bge-m3", "", "", ("*",), 8192, "BAAI/bge-m3"),
    Family("mxbai-embed-large", _PASSAGES, "", _EN, 512, "mixedbread-ai/mxbai-embed-large-v1"),
    Family("snowflake-arctic-embed(?:2|-[lm]-v2)", "query: ", "", ("*",), 8192,
           "Snowflake/snowflake-arctic-embed-l-v2.0"),
    Family("snowflake-arctic-embed", _PASSAGES, "", _EN, 512, "Snowflake/snowflake-arctic-embed-l"),
    Family("embeddinggemma", "task: search result | query: ", "title: none | text: ", ("*",), 2048,
           "google/embeddinggemma-300m"),
    Family("qwen3-embedding", _INSTRUCT, "", ("*",), 32768, "Qwen/Qwen3-Embedding-0.6B"),
    Family("all-minilm-l12", "", "", _EN, 128, "sentence-transformers/all-MiniLM-L12-v2"),
    Family("all-minilm", "", "", _EN, 256, "sentence-transformers/all-MiniLM-L6-v2"),
    Family("granite-embedding.*multilingual", "", "", ("*",), 512,
           "ibm-granite/granite-embedding-278m-multilingual"),
    Family("granite-embedding.*english", "", "", _EN, 512, "ibm-granite/granite-embedding-30m-english"),
    Family("text-embedding-3-", "", "", ("*",), 8191, "OpenAI, guide to embeddings"),
)  # fmt: skip
"""The first that matches counts. Where variants differ in length, ``max_tokens`` is that of the shortest."""

UNKNOWN = Family("", languages=_EN)


def base_name(model: str) -> str:
    """Return the name of a model without owner, tag, quantisation and file type, in lower case."""
    name = model.lower().replace("\\", "/").rstrip("/").rpartition("/")[2].partition("@")[0]
    name = name.partition(":")[0].replace("_", "-").removesuffix(".gguf").removesuffix("-gguf")
    if name.startswith("text-embedding-") and not re.match(r"text-embedding-(?:3-|ada)", name):
        name = name.removeprefix("text-embedding-")
    return name


def find_family(model: str) -> Family:
    """Return what is known of a model by its name; a family without prefixes when nothing is."""
    name = base_name(model)
    return next((family for family in FAMILIES if re.match(family.pattern, name)), UNKNOWN)
