"""No input takes more than about linear time: four times the text may cost nine times, not sixteen."""

import time
from collections.abc import Callable

import pytest

from searchsvc.reading.note import read_note
from searchsvc.tokens import Tokenizer, cost

SMALL, TIMES = 10_000, 4
NOISE = 0.003
SIGNS = (
    *"[]`#*|!(~<_\\\r", "<!--", "<!---->x", "](", "[[", "[[a|", "# a\n", "> ", "> \n", "***a ", "- ", "- a\n",
    "![", "[a](", '[a](x "', "[a](x (", "[x](<", "[a][", "[a]: b\n", "<a ", "<img src='", "&#", "\\`", "` ``",
    "1. ", "[^", "> - ", "a\n=\n", "a,", "é", "一", "#a ", "<!", "[]()", "[^a]: ",
    "[^a]: x\n", "[[a]b ", "$a", "$$a ", "#a#",
)  # fmt: skip


def _seconds(work: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def _is_linear(work: Callable[[int], object]) -> bool:
    """Compare twice before giving up, since another process may get in the way of a measurement."""
    for _ in range(3):
        small, large = _seconds(lambda: work(SMALL)), _seconds(lambda: work(SMALL * TIMES))
        if large <= 9 * max(small, NOISE):
            return True
    return False


@pytest.mark.parametrize("sign", SIGNS)
def test_reading_a_run_of_one_sign_takes_linear_time(sign: str) -> None:
    assert _is_linear(lambda n: read_note("n.md", f"# T\n\n{sign * (n // len(sign))}\n\n[[x]]".encode()))


@pytest.mark.parametrize("sign", SIGNS)
def test_reading_it_with_link_references_takes_linear_time(sign: str) -> None:
    tail = "\n\n[a]: b.md\n[r]: c.md\n"
    assert _is_linear(lambda n: read_note("n.md", (sign * (n // len(sign)) + "]" * 1000 + tail).encode()))


@pytest.mark.parametrize(
    "sign", ("a", "a.", "a-", "_", "aB", "1:", ".", "'", "C+", "#", "一", "ก", "é", "🎉", "\u0301", "\u200b")
)
def test_splitting_a_run_of_one_sign_takes_linear_time(sign: str) -> None:
    assert _is_linear(lambda n: Tokenizer().terms(sign * (n // len(sign))))
    assert _is_linear(lambda n: Tokenizer().query_terms(sign * (n // len(sign))))


def test_weighing_a_run_of_one_sign_takes_linear_time() -> None:
    for sign in ("a", "A1", " ", "-", "一"):
        assert _is_linear(lambda n, sign=sign: cost(sign * n))


def test_nesting_is_cut_off_without_losing_what_follows() -> None:
    outline = "\n".join("  " * depth + "- item" for depth in range(60))
    quotes = "> " * 150 + "deep"
    note = read_note("n.md", f"# T\n\n{quotes}\n\n{outline}\n\n## After\n\n[[x]]\n".encode())
    assert [section.title for section in note.sections] == ["T", "After"]
    assert [link.target for link in note.links] == ["x"]
