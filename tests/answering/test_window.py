import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from searchsvc.answering.window import best_window
from searchsvc.tokens import cost
from tests.answering.made_hits import LINES, TERMS_OF

WEIGHTS = {"tomato": 2.0, "water": 1.0, "令牌": 2.0}
PROSE = [f"Line {n} about nothing in particular." for n in range(40)]


def window_of(lines, budget, weights=WEIGHTS):
    return best_window(lines, 1, weights, TERMS_OF, budget)


@settings(deadline=None, max_examples=200)
@given(st.lists(LINES, min_size=1, max_size=30), st.integers(1, 400))
def test_a_window_never_costs_more_than_its_budget(lines, budget):
    assert cost(window_of(lines, budget).text) <= budget


def test_the_line_that_holds_the_question_is_in_the_window():
    lines = [*PROSE, "Water the tomatoes.", *PROSE]
    window = window_of(lines, 60)
    assert "Water the tomatoes." in window.text
    assert window.text == "\n".join(lines[window.line_start - 1 : window.line_end])


def test_without_any_word_of_the_question_the_window_is_the_beginning():
    assert window_of(["", *PROSE], 40).line_start == 2


@pytest.mark.parametrize("fence", ["```python", "~~~", "````", "  ```js", "> ```", "- ```sh", "   1. ```"])
@pytest.mark.parametrize("budget", [20, 45, 80, 130])
@pytest.mark.parametrize("place", [0, 3, 10, 20, 33])
def test_code_blocks_are_whole_in_a_window_that_cuts_them(fence, budget, place):
    prefix, mark = fence[: len(fence) - len(fence.lstrip(" >-1."))], fence.strip(" >-1.")
    inner = prefix if ">" in prefix else " " * len(prefix)
    code = [f"{inner}code {n}" for n in range(34)]
    code[place] = f"{inner}water tomatoes"
    mark = mark.rstrip("abcdefghijklmnopqrstuvwxyz")
    window = window_of([*PROSE, fence, *code, f"{inner}{mark}", *PROSE], budget)
    assert "water tomatoes" in window.text
    tokens = MarkdownIt().parse(f"{window.text}\n\nAfter the window.")
    blocks = [token for token in tokens if token.type == "fence"]
    assert len(blocks) == 1
    assert "water tomatoes" in blocks[0].content
    assert "After the window." not in blocks[0].content
    assert mark not in blocks[0].content


def test_a_fence_whose_code_is_not_shown_is_left_out():
    lines = ["```sh", *["run it"] * 60, "```", "Water the tomatoes.", "```sh", *["run it"] * 60, "```"]
    assert "```" not in window_of(lines, 9).text


def test_a_fence_of_an_example_inside_a_longer_fence_closes_nothing():
    lines = ["````", "```", "Water tomatoes.", "```", *PROSE, "````"]
    window = window_of(lines, 30)
    assert window.text.startswith("````\n")
    assert window.text.endswith("\n````")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("word " * 20_000 + "water tomatoes" + " word" * 20_000, "water tomatoes"),
        ("认证系统" * 10_000 + "访问令牌" + "认证系统" * 10_000, "令牌"),
        ("x" * 50_000 + " tomatoes " + "x" * 50_000, "tomatoes"),
    ],
    ids=["words", "Chinese", "opaque"],
)
def test_a_line_too_long_is_cut_around_the_words_of_the_question(line, said):
    window = window_of([line], 60)
    assert window.is_cut_inside_line
    assert said in window.text
    assert window.text.strip("…") in line
    assert cost(window.text) <= 60


@pytest.mark.parametrize("character", ["👩‍👩‍👧", "e\u0301", "👍🏽", "🇪🇸", "नि", "❤️"])
@pytest.mark.parametrize("budget", range(5, 30))
def test_a_cut_never_splits_what_a_reader_sees_as_one_character(character, budget):
    text = window_of([character * 500], budget, {}).text.strip("…")
    assert text.replace(character, "") == ""


def test_a_section_of_many_short_lines_takes_no_quadratic_time():
    lines = ["a"] * 60_000
    assert window_of(lines, 20_000).line_start == 1


def test_without_words_to_go_by_text_is_shown_and_not_the_heading_alone():
    lines = ["# Herons", "", "A heron waits in shallow water. " * 20, "", "Short."]
    window = best_window(lines, 10, {}, str.split, 30)
    assert window.text.startswith("A heron waits")
    assert (window.line_start, window.is_cut_inside_line) == (12, True)
    assert best_window(lines[:2], 10, {}, str.split, 30).text == "# Herons"
    whole = best_window(lines, 10, {}, str.split, 500)
    assert (whole.line_start, whole.line_end) == (10, 14)
