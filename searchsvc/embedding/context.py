"""Vectors of sections that know where they stand.

A window says little of the page it is from. So it is embedded with its context in front, and the vector
is leaned towards the vectors of the section's heading and of the context line. Measured on seven corpora,
vectors alone find more that way (nDCG@10 .51 to .57 with MiniLM) for two short texts more a section.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from searchsvc.embedding.base import Embedder, Matrix, Outcome, Partial, Passage

HEADING_WEIGHT = 0.3
CONTEXT_WEIGHT = 0.2

_COMMENT = re.compile(r"<!--[^>]{0,2000}-->")
_LINK = re.compile(r"!?\[([^\[\]]{0,500})\]\([^()\s]{0,2000}(?:\s[^()]{0,500})?\)")
_WIKILINK = re.compile(r"!?\[\[([^\[\]|]{0,500})(?:\|([^\[\]]{0,500}))?\]\]")
_REFERENCE = re.compile(r"^ {0,3}\[[^\]]{1,500}\]:\s*\S.*$", re.MULTILINE)
_FENCE = re.compile(r"^\s*(?:`{3,}|~{3,}|:{3,}).*$", re.MULTILINE)
_RULE = re.compile(r"[-=|]{4,}")
_DATA_URI = re.compile(r"data:[\w.+/-]{1,100};base64,[A-Za-z0-9+/=]+")


def encode_in_context(embedder: Embedder, passages: Iterable[Passage]) -> Iterator[Outcome]:
    """Yield for each passage its unit row vectors, shape ``(windows, dimension)``, leaned to its context.

    A passage that the model did not take whole yields a ``Partial``. Passages are taken as they are needed.
    """
    outcomes = embedder.encode_passages(text for passage in passages for text in texts_of(passage))
    for windows in outcomes:
        leaned = _lean(_rows(windows), _rows(next(outcomes)), _rows(next(outcomes)))
        yield replace(windows, rows=leaned) if isinstance(windows, Partial) else leaned


def readable(text: str) -> str:
    """Return Markdown as a reader sees it, roughly: no addresses, no fences, no comments; code stays."""
    # Most sections have little of all this, and a look for a sign costs less than a pattern.
    if ";base64," in text:
        text = _DATA_URI.sub("", text)
    if "<!--" in text:
        text = _COMMENT.sub(" ", text)
    if "]" in text:
        text = _WIKILINK.sub(_shown, _LINK.sub(r"\1", _REFERENCE.sub("", text)))
    text = _FENCE.sub("", text).replace("`", "").replace("**", "")
    return " ".join(_RULE.sub(" ", text).split())


def _shown(link: re.Match[str]) -> str:
    return str(link.group(2) or link.group(1).replace("#", " "))


def texts_of(passage: Passage) -> tuple[Passage, Passage, Passage]:
    """Return what is embedded for a passage: its text in its context, its heading, its context."""
    body = Passage(passage.context, readable(passage.text) or passage.heading, passage.heading)
    return body, Passage("", passage.heading, ""), Passage("", passage.context, "")


def _lean(windows: Matrix, heading: Matrix, context: Matrix) -> Matrix:
    mixed = windows + HEADING_WEIGHT * _row(heading) + CONTEXT_WEIGHT * _row(context)
    lengths = np.sqrt(np.einsum("ij,ij->i", mixed, mixed))
    return np.asarray(mixed / np.maximum(lengths, 1e-12)[:, None], dtype=np.float32)


def _rows(outcome: Outcome) -> Matrix:
    return outcome.rows if isinstance(outcome, Partial) else outcome


def _row(matrix: Matrix) -> Matrix | float:
    return matrix[:1] if len(matrix) else 0.0


PROBES = (
    "how long should I boil eggs for a soft yolk",
    "best time of year to visit the mountains with children",
    "why do cats purr when they are sleeping",
    "what did the court decide about the property dispute",
    "symptoms of a cold and when to see a doctor",
    "how to tune an acoustic guitar by ear",
    "who won the championship match last season",
    "history of the silk trade along ancient routes",
    "how to prune roses before winter",
    "what is the boiling point of water at high altitude",
    "interest rates and monthly mortgage payments",
    "when did the volcano last erupt",
    "how to paint a wooden fence",
    "the novel's narrator and her relationship with her sister",
    "which vaccines are recommended for newborn babies",
    "how does a diesel engine differ from a petrol engine",
    "traditional wedding dances in the countryside",
    "how far is the moon from the earth",
    "recipe for tomato soup with basil",
    "how to teach a dog to sit",
)
"""Questions about everyday matters. Most have no answer in any one corpus, so the median of their best
cosines says what a model gives when nothing is there."""
