"""The file tools see one folder, as it is, and nothing outside of it."""

import os

import pytest

from benchmark.study import file_tools
from benchmark.study.file_tools import FileTools, Line, ToolFault
from benchmark.study.tool_box import FILES, Lines, ToolBox, cut


@pytest.fixture
def tools(tmp_path):
    notes = tmp_path / "notes"
    (notes / "deep").mkdir(parents=True)
    (notes / "a.md").write_bytes(b"# A\r\none heron\r\n\r\ntwo Herons\r\n")
    (notes / "deep" / "b.md").write_text("# B\nheron of b\nlast", encoding="utf-8")
    (notes / "image.png").write_bytes(b"\x89PNG\0\0\0\0")
    (notes / ".hidden").mkdir()
    (notes / ".hidden" / "c.md").write_text("heron", encoding="utf-8")
    (tmp_path / "secret.md").write_text("heron outside", encoding="utf-8")
    return FileTools(notes)


def text(lines):
    return "\n".join(line.text for line in lines)


def test_ls(tools):
    assert text(tools.call("ls", {})) == "a.md (4 lines)\ndeep/\nimage.png (not text)"
    assert text(tools.call("ls", {"recursive": True})).split("\n")[-1] == "deep/b.md (3 lines)"
    assert text(tools.call("ls", {"path": "deep"})) == "deep/b.md (3 lines)"


def test_read_file_counts_lines_as_searchsvc_does(tools):
    lines = tools.call("read_file", {"path": "a.md", "line_start": 2, "line_end": 99})
    assert lines == [
        Line("2\tone heron", ("a.md", 2)),
        Line("3\t", ("a.md", 3)),
        Line("4\ttwo Herons", ("a.md", 4)),
    ]
    assert text(tools.call("read_file", {"path": "./deep/../a.md", "line_end": "1"})) == "1\t# A"
    absolute = tools.folder / "deep" / "b.md"
    assert len(tools.call("read_file", {"path": str(absolute), "line_start": 2.0})) == 2


def test_grep(tools):
    assert text(tools.call("grep", {"pattern": "heron"})) == "a.md:2:one heron\ndeep/b.md:2:heron of b"
    loose = tools.call("grep", {"pattern": "HERONS?$", "ignore_case": True, "path": "a.md"})
    assert text(loose) == "a.md:2:one heron\na.md:4:two Herons"
    around = tools.call("grep", {"pattern": "heron", "context": 1})
    assert text(around) == (
        "a.md-1-# A\na.md:2:one heron\na.md-3-\n--\ndeep/b.md-1-# B\ndeep/b.md:2:heron of b\ndeep/b.md-3-last"
    )
    assert ("deep/b.md", 3) in [line.place for line in around]
    assert text(tools.call("grep", {"pattern": "h", "max_results": 1})).endswith("the rest is left out)")
    assert text(tools.call("grep", {"pattern": "stork"})) == "no match"


@pytest.mark.parametrize(
    "path",
    [
        "../secret.md",
        "deep/../../secret.md",
        "/etc/hostname",
        "outside.md",
        "out/secret.md",
        ".hidden/c.md",
        "a\0b",
    ],
)
@pytest.mark.parametrize("tool", ["ls", "grep", "read_file"])
def test_nothing_outside_is_seen(tools, tool, path):
    try:
        os.symlink(tools.folder.parent / "secret.md", tools.folder / "outside.md")
        os.symlink(tools.folder.parent, tools.folder / "out")
    except OSError:
        pytest.skip("no symbolic links here")
    with pytest.raises(ToolFault, match=r"is not inside|there is no"):
        tools.call(tool, {"path": path} | ({"pattern": "x"} if tool == "grep" else {}))
    assert "outside" not in text(tools.call("grep", {"pattern": "heron"}))
    assert "out" not in text(tools.call("ls", {"recursive": True}))
    assert "out" not in text(tools.call("ls", {}))


@pytest.mark.parametrize(
    ("tool", "arguments", "reason"),
    [
        ("grep", {"pattern": "("}, "not a regular expression"),
        ("grep", {}, "grep needs pattern"),
        ("grep", {"pattern": "x", "context": -1}, "context is a number from 0"),
        ("grep", {"pattern": "x", "max_results": 0}, "from 1 to"),
        ("grep", {"patern": "x"}, "no parameter 'patern'; it has pattern"),
        ("grep", {"pattern": 5}, "expected a string"),
        ("read_file", {"path": "gone.md"}, "there is no 'gone.md'"),
        ("read_file", {"path": "deep"}, "is a folder"),
        ("read_file", {"path": "image.png"}, "not a text file"),
        ("read_file", {"path": "a.md", "line_start": 9}, "has 4"),
        ("read_file", {"path": "a.md", "line_start": 3, "line_end": 2}, "no lines 3 to 2"),
        ("read_file", {"path": "a.md", "line_start": True}, "expected a integer"),
        ("ls", {"path": "a.md"}, "is a file"),
    ],
)
def test_a_wrong_call_says_what_is_wrong(tools, tool, arguments, reason):
    with pytest.raises(ToolFault, match=reason.replace("(", r"\(")):
        tools.call(tool, arguments)
    output = ToolBox(FILES, tools).call(tool, arguments)
    assert output.is_error
    assert output.lines[0].text.startswith("Error: ")


def test_an_expression_that_never_ends_is_ended(tools, monkeypatch):
    monkeypatch.setattr(file_tools, "GREP_SECONDS", 1.5)
    (tools.folder / "long.md").write_text("a" * 60 + "!", encoding="utf-8")
    with pytest.raises(ToolFault, match="takes too long"):
        tools.call("grep", {"pattern": "(a+)+$"})


def test_output_is_cut_at_whole_lines_and_what_is_cut_was_not_shown():
    lines = [Line("x" * 60, ("a.md", n)) for n in range(1, 11)]
    whole, shown, is_cut = cut(lines, 609)
    assert (len(whole), shown, is_cut) == (609, [("a.md", 1, 10)], False)
    for limit in range(1, 609):
        part, shown, is_cut = cut(lines, limit)
        assert len(part) <= limit
        assert is_cut
        for _, _, last in shown:
            assert part.count("x" * 60) >= last
    assert cut(lines, 608)[1] == [("a.md", 1, 9)]


def test_lines_are_found_again_in_any_text(tmp_path):
    (tmp_path / "a.md").write_text("# A\n\nunique words\n| --- |\nsame words\nend of a\n", encoding="utf-8")
    (tmp_path / "b.md").write_text("same words\nend of b\n", encoding="utf-8")
    lines = Lines(tmp_path)

    def places(text):
        return [line.place for line in lines.mark(text)]

    assert places("header\nunique words\n| --- |\nsame words\nother") == [
        None, ("a.md", 3), ("a.md", 4), ("a.md", 5), None,
    ]  # fmt: skip
    assert places("same words") == [None], "nobody can say of which file"
    assert places("=== b.md#x\nsame words\nend of b") == [None, ("b.md", 1), ("b.md", 2)]
    both = "=== a.md#x\nsame words\n=== b.md#x\nsame words\nend of b"
    assert places(both) == [None, ("a.md", 5), None, ("b.md", 1), ("b.md", 2)]
    assert places("unique wor…\n| --- |") == [None, None], "a part of a line is not the line"
