"""Boxes and tabs of MkDocs are Markdown, and not the code that CommonMark sees in them."""

import pytest

from searchsvc.reading.note import read_note
from searchsvc.reading.structure import read_structure


def links_of(text: str) -> list[str]:
    return [link.target for link in read_note("a.md", text.encode()).links]


def structure_of(text: str):
    return read_structure(tuple(text.split("\n")), 1)


@pytest.mark.parametrize(
    "opening",
    [
        "!!! note",
        "!!!note",
        "!!! danger highlight blink",
        '!!! tip "A title"',
        "??? question",
        '???+ note "Open"',
        '??? "Only a title"',
        '=== "Linux"',
        '===! "First"',
        '===+ "Chosen"',
    ],
)
def test_links_in_boxes_and_tabs_are_links(opening):
    assert links_of(f"{opening}\n\n    See [b](b.md) and\n    [[c]].\n\n    [d](d.md)\n\n[e](e.md)\n") == [
        "b.md", "c", "d.md", "e.md",
    ]  # fmt: skip
    assert links_of(f"text above\n{opening}\n    [b](b.md)\n") == ["b.md"]


@pytest.mark.parametrize(
    "opening",
    [
        "!!! note: this",
        "!! note",
        "!!!",
        "???",
        "=== Tab",
        '==== "Tab"',
        "plain",
        '!!! "t" note',
        "!!! note.",
    ],
)
def test_what_opens_no_box_leaves_indented_lines_code(opening):
    assert links_of(f"{opening}\n\n    [b](b.md)\n") == []


def test_a_box_without_a_body_is_text():
    found = structure_of("!!! note\n\nnot indented\n\n!!! tip")
    assert [block.content for block in found.blocks] == ["!!! note", "not indented", "!!! tip"]


def test_code_in_a_box_is_code_of_its_language_and_the_rest_is_not():
    found = structure_of(
        '!!! note "Run"\n\n    First:\n\n    ```sh\n    # run\n    ```\n\n        deeper\n\nend\n'
    )
    assert [(code.line_start, code.line_end, code.language) for code in found.code] == [
        (5, 7, "sh"),
        (9, 9, ""),
    ]
    assert [block.content for block in found.blocks] == ['!!! note "Run"', "First:", "end"]


def test_a_heading_in_a_box_ends_no_section_and_can_be_linked_to():
    found = structure_of("# A\n\n!!! note\n\n    ## Inner\n\n    text\n\n## B\n")
    assert [heading.title for heading in found.headings] == ["A", "B"]
    assert found.inner_headings == [(5, "Inner")]


def test_boxes_stand_in_boxes_lists_and_quotes():
    text = (
        "!!! note\n\n    ??? tip\n\n        [a](a.md)\n\n- item\n\n  !!! note\n\n      [b](b.md)\n\n"
        "> !!! note\n>     [c](c.md)\n\n1. one\n!!! note\n    [d](d.md)\n"
    )
    assert links_of(text) == ["a.md", "b.md", "c.md", "d.md"]
