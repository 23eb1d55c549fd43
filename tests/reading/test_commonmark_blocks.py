"""Headings, fences and HTML by the CommonMark specification 0.31.2 (4.2, 4.3, 4.5, 4.6), in our words."""

import pytest

from searchsvc.reading.note import read_note

ATX = [
    ("# foo\n## foo\n### foo\n#### foo\n##### foo\n###### foo", [(n, n, "foo") for n in range(1, 7)]),
    ("####### foo", []),
    ("#5 bolt\n\n#hashtag", []),
    ("\\## foo", []),
    ("# foo *bar* \\*baz\\*", [(1, 1, "foo bar *baz*")]),
    ("#                  foo                     ", [(1, 1, "foo")]),
    (" ### foo\n  ## foo\n   # foo", [(3, 1, "foo"), (2, 2, "foo"), (1, 3, "foo")]),
    ("    # foo", []),
    ("foo\n    # bar", []),
    ("## foo ##\n  ###   bar    ###", [(2, 1, "foo"), (3, 2, "bar")]),
    ("# foo ##################################\n##### foo ##", [(1, 1, "foo"), (5, 2, "foo")]),
    ("### foo ###     ", [(3, 1, "foo")]),
    ("### foo ### b", [(3, 1, "foo ### b")]),
    ("# foo#", [(1, 1, "foo#")]),
    ("### foo \\###\n## foo #\\##\n# foo \\#", [(3, 1, "foo ###"), (2, 2, "foo ###"), (1, 3, "foo #")]),
    ("****\n## foo\n****", [(2, 2, "foo")]),
    ("Foo bar\n# baz\nBar foo", [(1, 2, "baz")]),
    ("## \n#\n### ###", [(2, 1, ""), (1, 2, ""), (3, 3, "")]),
]
SETEXT = [
    ("Foo *bar*\n=========\n\nFoo *bar*\n---------", [(1, 1, "Foo bar"), (2, 4, "Foo bar")]),
    ("Foo *bar\nbaz*\n====", [(1, 1, "Foo bar baz")]),
    ("  Foo *bar\nbaz*\t\n====", [(1, 1, "Foo bar baz")]),
    ("Foo\n-------------------------\n\nFoo\n=", [(2, 1, "Foo"), (1, 4, "Foo")]),
    ("   Foo\n---\n\n  Foo\n-----\n\n  Foo\n  ===", [(2, 1, "Foo"), (2, 4, "Foo"), (1, 7, "Foo")]),
    ("    Foo\n    ---\n\n    Foo\n---", []),
    ("Foo\n   ----      ", [(2, 1, "Foo")]),
    ("Foo\n    ---", []),
    ("Foo\n= =\n\nFoo\n--- -", []),
    ("Foo  \n-----\n\nBar\\\n----", [(2, 1, "Foo"), (2, 4, "Bar\\")]),
    ("`Foo\n----\n`", [(2, 1, "`Foo")]),
    ("> Foo\n---", []),
    ("> foo\nbar\n===", []),
    ("- Foo\n---", []),
    ("Foo\nBar\n---", [(2, 1, "Foo Bar")]),
    ("---\nFoo\n---\nBar\n---\nBaz", [(2, 2, "Foo"), (2, 4, "Bar")]),
    ("\n====", []),
    ("---\n---", []),
    ("- foo\n-----", []),
    ("    foo\n---", []),
    ("\\> foo\n------", [(2, 1, "> foo")]),
    ("Foo\n\nbar\n---\nbaz", [(2, 3, "bar")]),
    ("Foo\nbar\n\n---\n\nbaz", []),
    ("Foo\nbar\n\\---\nbaz", []),
]
FENCES = [
    ("```\n# x\n```\n# y", [(1, 4, "y")]),
    ("``\n# x\n``", [(1, 2, "x")]),
    ("```\n# x\n~~~\n# y", []),
    ("~~~\n# x\n```\n~~~\n# y", [(1, 5, "y")]),
    ("````\n# x\n```\n``````\n# y", [(1, 5, "y")]),
    ("```\n# x", []),
    ("> ```\n> # x\n\n# y", [(1, 4, "y")]),
    ("  ```\n# x\n ```\n# y", [(1, 4, "y")]),
    ("    ```\n# x\n    ```", [(1, 2, "x")]),
    ("```\n# x\n  ```\n# y", [(1, 4, "y")]),
    ("```\n# x\n    ```\n# y", []),
    ("``` ```\n# x", [(1, 2, "x")]),
    ("~~~~~~\n# x\n~~~ ~~\n# y", []),
    ("foo\n```\n# x\n```\n# y", [(1, 5, "y")]),
    ("```ruby startline=3 $%@#$\n# x\n```\n# y", [(1, 4, "y")]),
    ("``` aa ```\n# x", [(1, 2, "x")]),
    ("~~~ aa ``` ~~~\n# x\n~~~\n# y", [(1, 4, "y")]),
    ("```\n``` aaa\n# x\n```\n# y", [(1, 5, "y")]),
]
HTML = [
    ("<table><tr><td>\n# x\n\n# y", [(1, 4, "y")]),
    ("<pre>\n# x\n\n# y\n</pre>\n# z", [(1, 6, "z")]),
    ("<!-- a\n\n# x -->\n# y", [(1, 4, "y")]),
    ("<?a\n\n# x ?>\n# y", [(1, 4, "y")]),
    ("<del>\n# x\n\n# y", [(1, 4, "y")]),
    ("text <del>\n# x", [(1, 2, "x")]),
    ("text\n<div>\n# x\n\n# y", [(1, 5, "y")]),
]


@pytest.mark.parametrize(("text", "wanted"), [*ATX, *SETEXT, *FENCES, *HTML])
def test_headings_are_those_of_the_specification(text: str, wanted: list[tuple[int, int, str]]) -> None:
    note = read_note("n.md", text.encode())
    found = [(s.level, s.line_start, s.title) for s in note.sections if s.level]
    assert found == wanted
