"""Whether an answer is right, by the rules of MMLongBench-Doc (Ma et al., 2024).

Int: exact. Float: within 1 %, and a percentage may be written as a share or the other way round. Str: ANLS,
0 up to a threshold of 0.5; exact where the right answer looks like a number, date, time, page, URL, file of
code, e-mail or phone number. List: as many elements, sorted and scored in pairs, the least counts; all exact
where the first looks like those. None: right when the agent says that there is no answer.

There a model first cut each answer down to the bare value; here the agent is asked for it, and one number
among other words is taken for that number. That two numbers are also equal when rounded to two places is left
out: it would take 0 for 0.003. An integer is not cut off at its point either: 40.7 is not 40.
"""

import ast
import math
import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmark.study.questions import Question

Floats = NDArray[np.float64]
THRESHOLD = 0.5
TOLERANCE = 0.01
_MOST_CHARACTERS = 2000
"""Of an answer; longer ones are far from any right one, and cost time by the square."""
_NUMBER = re.compile(
    r"(?:(?<!\w)[-+])?(?:\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)(?:e[-+]?\d+)?",
    re.IGNORECASE,
)
"""A sign counts where no word ends before it: ``type-40`` holds 40."""
_EXACT = (
    re.compile(r"https?://"),
    re.compile(r"(?:\.py|ipynb)$"),
    re.compile(r"^page"),
    re.compile(r"a\.m\.|p\.m\."),
    re.compile(r"^\d+(?:[-\s]\d+)?$"),
    re.compile(r"^\+?\d[\d\s()-]{5,}\d$"),
    re.compile(r"^\d{4}[-\s]\d{2}(?:[-\s]\d{2})?$"),
    re.compile(r"^[\w.%+-]+@[\w.-]+\.[a-z]{2,}$"),
)


@dataclass(frozen=True, slots=True)
class Given:
    """What an agent gave in the end."""

    status: str
    """``answered``, ``not_answerable``, or empty when it gave nothing within the caps."""
    answer: str = ""


def score_answer(question: Question, given: Given) -> float:
    """Return how right an answer is, from 0 to 1; no answer is wrong, even where there is none."""
    if not question.is_answerable or given.status != "answered":
        return float(given.status == "not_answerable" and not question.is_answerable)
    right, answer = question.answer, given.answer[:_MOST_CHARACTERS]
    if question.answer_format == "Int":
        return float(_number(answer) == _number(right))
    if question.answer_format == "Float":
        return float(_is_near(_number(right), _number(answer)))
    if question.answer_format == "List":
        return _score_list(elements(right), elements(answer))
    return _score_text(clean(right), clean(answer))


def answerability_counts(question: Question, given: Given, score: float) -> tuple[float, float, float]:
    """Return what precision, recall and F1 are made of, to be added up over questions.

    The score if the question has an answer, whether the agent did not say that it has none, and whether it
    has one. As in the published evaluation an agent that gives nothing has not said so: it loses precision.
    """
    earned = score if question.is_answerable else 0.0
    return earned, float(given.status != "not_answerable"), float(question.is_answerable)


def precision_recall_f1(sums: Floats) -> Floats:
    """Return precision, recall and F1 over answerability, shape ``(..., 3)``, of summed counts.

    All of it is NaN without a question that has an answer; precision is 0 when the agent said of every
    question that it has none.
    """
    earned, claimed, answerable = np.moveaxis(np.asarray(sums, np.float64), -1, 0)
    precision = np.divide(earned, claimed, out=np.zeros_like(earned), where=claimed > 0)
    recall = np.divide(earned, answerable, out=np.zeros_like(earned), where=answerable > 0)
    total = precision + recall
    f1 = np.divide(2 * precision * recall, total, out=np.zeros_like(earned), where=total > 0)
    found = np.stack((precision, recall, f1), axis=-1)
    return np.where(answerable[..., None] > 0, found, np.nan)


def clean(text: str) -> str:
    """Return a text in small letters, without parentheses, outer quotes, dollar or percent signs."""
    text = re.sub(r"\s*\([^)]*\)", "", text.lower().strip()).strip()
    text = re.sub(r"^['\"]|['\"]$", "", text).strip()
    return text.lstrip("$").rstrip("%").strip()


def anls(right: str, answer: str) -> float:
    """Return the similarity by edit distance; 0 up to the threshold."""
    longest = max(len(right), len(answer))
    similarity = 1.0 - edit_distance(right, answer) / longest if longest else 1.0
    return similarity if similarity > THRESHOLD else 0.0


def edit_distance(first: str, second: str) -> int:
    """Return how many characters must be put in, taken out or changed."""
    row = list(range(len(first) + 1))
    for place, character in enumerate(second, 1):
        previous, row = row, [place]
        for n, other in enumerate(first, 1):
            row.append(min(previous[n] + 1, row[-1] + 1, previous[n - 1] + (other != character)))
    return row[-1]


def elements(text: str) -> list[str]:
    """Return the elements of a list written as ``['a', 'b']``; any other text is its only element."""
    text = text.strip()
    if text.startswith("["):
        try:
            value = ast.literal_eval(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            value = [part.strip() for part in text.strip("[]").split(",")]
        if isinstance(value, list):
            return [str(element) for element in value]
    return [text]


def _score_list(right: list[str], answer: list[str]) -> float:
    if len(right) != len(answer) or not right:
        return 0.0
    pairs = list(zip(sorted(map(clean, right)), sorted(map(clean, answer)), strict=True))
    if _is_exact(pairs[0][0]) or _is_float(pairs[0][0]):
        return float(all(wanted == found for wanted, found in pairs))
    return min(anls(wanted, found) for wanted, found in pairs)


def _score_text(right: str, answer: str) -> float:
    return float(right == answer) if _is_exact(right) else anls(right, answer)


def _is_exact(text: str) -> bool:
    return any(pattern.search(text) for pattern in _EXACT)


def _is_float(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _number(text: str) -> float:
    """Return the number that a text is, or the only one in it; NaN, which equals nothing, for others."""
    bare = clean(text)
    found = [bare] if _is_float(bare) else _NUMBER.findall(bare)
    return float(found[0].replace(",", "")) if len(found) == 1 else math.nan


def _is_near(right: float, answer: float) -> bool:
    return any(math.isclose(value, answer, rel_tol=TOLERANCE) for value in (right / 100, right, right * 100))
