"""The fast paragraph rule gives the tokens of the stock rules."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from searchsvc.reading.prose import add_prose_rule

CASES = Path(__file__).parents[1] / "cases"
LINES = st.sampled_from(
    [
        "words here",
        "",
        "  indented",
        "    deep",
        "\ttab",
        "> quote",
        ">> twice",
        "- item",
        "  - inner",
        "1. one",
    ]
    + [
        "2) two",
        "***",
        "---",
        "===",
        "# Title",
        "## Sub",
        "```",
        "~~~",
        "<div>",
        "</div>",
        "<!-- a",
        "-->",
        "[a]: /b",
    ]
    + [
        "[link](x)",
        "(bracket)",
        "*emphasis*",
        "`code`",
        "_under_",
        "+ plus",
        "=",
        "-",
        "中文",
        "| a | b |",
        "|---|",
    ]
)


def parser(*, with_rule):
    made = MarkdownIt("commonmark", {"maxNesting": 200})
    made.core.ruler.enableOnly(["normalize", "block"])
    if with_rule:
        add_prose_rule(made)
    return made


STOCK, FAST = parser(with_rule=False), parser(with_rule=True)


def tokens(made, text):
    environment = {}
    seen = [
        (t.type, t.tag, t.nesting, t.level, t.map, t.content, t.hidden, t.info)
        for t in made.parse(text, environment)
    ]
    return seen, environment


@settings(max_examples=600)
@given(st.lists(LINES, max_size=14).map("\n".join))
def test_lines_of_every_kind_give_the_same_tokens(text):
    assert tokens(FAST, text) == tokens(STOCK, text)


@settings(max_examples=300)
@given(st.text(alphabet="ab \n\t>-*_`~#=<[]:1.+|\\x0b\u3000", max_size=60))
def test_any_characters_give_the_same_tokens(text):
    assert tokens(FAST, text) == tokens(STOCK, text)


@pytest.mark.parametrize("file", sorted(CASES.glob("*.jsonl")), ids=lambda file: file.stem)
def test_every_case_gives_the_same_tokens(file):
    for line in filter(None, file.read_text(encoding="utf-8").split("\n")):
        for content in json.loads(line).get("files", {}).values():
            if isinstance(content, str):
                assert tokens(FAST, content) == tokens(STOCK, content)
