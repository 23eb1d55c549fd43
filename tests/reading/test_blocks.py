"""The parser that looks its rules up gives the tokens of the stock parser."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from searchsvc.reading.admonitions import admonition
from searchsvc.reading.asides import aside
from searchsvc.reading.blocks import parse_blocks
from searchsvc.reading.decode import split_lines
from searchsvc.reading.footnotes import footnote

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
        "$$",
        "x = y $$",
        "%%",
        "%% short %%",
        "!!! note",
        '??? tip "Title"',
        '=== "Tab"',
        "        deeper",
        "{/* hidden",
        "there */}",
        "[^a]: note",
        "[^b]:",
    ]
)


STOCK = MarkdownIt("commonmark", {"maxNesting": 200})
STOCK.core.ruler.enableOnly(["normalize", "block"])
STOCK.block.ruler.before("fence", "aside", aside, {"alt": ["paragraph", "reference", "blockquote", "list"]})
STOCK.block.ruler.before(
    "fence", "admonition", admonition, {"alt": ["paragraph", "reference", "blockquote", "list"]}
)
STOCK.block.ruler.before("reference", "footnote", footnote, {"alt": ["paragraph", "reference", "blockquote"]})
READ = ("inline", "heading_open", "html_block", "fence", "code_block", "comment_open", "comment_close")


def stock(lines):
    environment = {}
    found = STOCK.parse("\n".join(lines), environment)
    return shown(token for token in found if token.type in READ), environment.get("references")


def ours(lines):
    environment = {}
    return shown(parse_blocks(lines, environment)), environment.get("references")


def shown(tokens):
    return [(t.type, t.tag, t.level, t.map, t.content, t.markup, t.info) for t in tokens]


def assert_same(text):
    for ending in ("", "\n", "\n \t", "\n\n"):
        lines = split_lines(text + ending)
        assert ours(lines) == stock(lines)


@settings(max_examples=600)
@given(st.lists(LINES, max_size=14).map("\n".join))
def test_lines_of_every_kind_give_the_same_tokens(text):
    assert_same(text)


@settings(max_examples=300)
@given(st.text(alphabet="ab \n\t>-*_`~#=<[]^:1.+|$%\\x0b\u3000", max_size=60))
def test_any_characters_give_the_same_tokens(text):
    assert_same(text)


@pytest.mark.parametrize("file", sorted(CASES.glob("*.jsonl")), ids=lambda file: file.stem)
def test_every_case_gives_the_same_tokens(file):
    for line in filter(None, file.read_text(encoding="utf-8").split("\n")):
        for content in json.loads(line).get("files", {}).values():
            if isinstance(content, str):
                assert_same(content)
