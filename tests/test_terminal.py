"""What the command line takes, how it ends, and that its advice can be followed on a terminal."""

import json
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from searchsvc.cli import main
from searchsvc.wording import error_on_terminal, reply_on_terminal
from tests.notes import write_notes

TOOLS = re.compile(
    r"list_documents|get_documents|md_\w+|semantic_search|read_md_with_images|node_id|max_tokens|cursor="
)
LONG = "# Long\n\n" + "\n".join(f"## Part {n}\n\nHerons of part {n} nest here.\n" for n in range(1, 60))
NOTES = {
    "long.md": LONG,
    "a.md": "---\nstatus: done\ntags: [x, y]\nkind: [bird, fish]\n---\n# A\n\nHerons nest. [b](b.md)\n",
    "b.md": "---\nstatus: open\nkind: bird\n---\n# B\n\nHerons fly. [a](a.md)\n",
    "deep/c.md": "# C\n\nHerons wade. [long](../long.md)\n\n```python\nx = 1\n```\n",
    "2026.md": "# Year\n\nOf herons.\n",
}


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setenv("SEARCHSVC_MODEL", "none")
    monkeypatch.setenv("SEARCHSVC_INSTANT_MODEL", "none")
    (tmp_path / "empty.yaml").touch()
    monkeypatch.setenv("SEARCHSVC_CONFIG", str(tmp_path / "empty.yaml"))
    monkeypatch.setenv("SEARCHSVC_DATA_DIR", str(tmp_path / "data"))
    write_notes(tmp_path / "notes", NOTES)
    monkeypatch.chdir(tmp_path / "notes")

    def invoke(*arguments, code=0):
        result = CliRunner().invoke(main, arguments)
        assert result.exit_code == code, result.output
        return result.output

    return invoke


# How commands end


@pytest.mark.parametrize(
    "arguments",
    [
        ("tree", "nope"),
        ("section", "nope", "x"),
        ("section", "a", "zzzz"),
        ("read", "nope"),
        ("frontmatter", "nope"),
        ("graph", "node", "nope"),
        ("search", "herons", "--path", "nope"),
        ("search", "herons", "--tag", "nope"),
        ("search", "herons", "--profile", "nope"),
        ("find", "herons", "--path", "nope"),
        ("profiles", "use", "nope"),
    ],
)
def test_what_is_not_there_ends_with_3_whatever_the_command(run, arguments):
    run(*arguments, code=3)


@pytest.mark.parametrize(
    "arguments",
    [
        ("search", "herons", "--since", "bogus"),
        ("search", " "),
        ("search", "herons", "--property", "status"),
        ("read", "a:5-1"),
        ("tree", "long", "--cursor", "x"),
        ("section", "a"),
        ("graph", "node"),
        ("graph", "path", "a"),
        ("serve", ".", "--toolsets", "bogus"),
        ("index", "nowhere"),
    ],
)
def test_a_wrong_argument_ends_with_2_whatever_the_command(run, arguments):
    run(*arguments, code=2)


def test_what_is_refused_or_cannot_be_done_ends_with_1(run, tmp_path):
    assert "add --allow-path FOLDER" in run("tree", str(tmp_path / "x.md"), code=1)
    run("status", "--model", "nomodel", code=1)


# Advice


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("tree", "zzzzzzzz"), 3),
        (("tree", "deep"), 3),
        (("section", "a"), 2),
        (("section", "a", "zzzz"), 3),
        (("section", "long", "long", "--budget", "100"), 0),
        (("read", "zzzzzzzz", "a"), 0),
        (("read", "zzzzzzzz"), 3),
        (("read", "long", "--budget", "100"), 0),
        (("read", "a:0"), 2),
        (("read", "a:5-1"), 2),
        (("read", "long", "--cursor", "1-1-aaaaaa"), 2),
        (("tree", "long", "--budget", "100"), 0),
        (("find", "herons"), 0),
        (("find", "herons", "--budget", "100"), 0),
        (("search", "herons", "--budget", "200"), 0),
        (("search", "herons", "--budget", "100", "--detail", "list"), 0),
        (("search", "herons", "--path", "zzz"), 3),
        (("graph", "node"), 2),
        (("graph", "node", "zzzz"), 3),
        (("graph", "node", "deep"), 3),
        (("graph", "search_type"), 2),
        (("graph", "path", "a"), 2),
        (("graph", "most_connected", "--budget", "100"), 0),
    ],
)
def test_no_tool_of_an_agent_is_advised_on_a_terminal(run, arguments, code):
    said = run(*arguments, code=code)
    assert not TOOLS.search(said), said


def test_the_command_that_is_advised_does_what_is_said(run, tmp_path):
    root = str(tmp_path / "notes")
    missing = run("section", "a", "zzzz", "--root", root, code=3)
    command = shlex.split(re.search(r"`searchsvc (tree [^`]*)`", missing)[1])
    assert command == ["tree", "a.md", "--root", root]
    assert "_intro L6-8" in run(*command)
    cut = run("section", "long", "long", "--budget", "100")
    rest = shlex.split(re.search(r"`searchsvc (read [^`]*)`", cut)[1])
    assert "Herons of part 59" in run(*rest) and "Herons of part 1 " not in run(*rest)


@pytest.mark.parametrize(
    "arguments",
    [
        ("tree", "long", "--cursor", "0", "--budget", "100"),
        ("read", "long", "deep/c", "--no-code", "--budget", "100"),
        ("search", "herons", "--budget", "150"),
    ],
)
def test_a_cursor_that_is_printed_is_taken(run, arguments):
    pages, seen = 0, set()
    while True:
        page = run(*arguments)
        assert page not in seen
        seen.add(page)
        found = re.search(r"--cursor ([\w-]+)", page)
        if found is None:
            break
        if "--cursor" in arguments:
            at = arguments.index("--cursor")
            arguments = arguments[:at] + arguments[at + 2 :]
        arguments, pages = (*arguments, "--cursor", found[1]), pages + 1
    assert pages > 2


def test_a_cursor_of_the_graph_is_taken(run, monkeypatch):
    write_notes(Path(), {f"alone/n{n}.md": f"# N{n}\n" for n in range(40)})
    monkeypatch.setenv("SEARCHSVC_MAX_REPLY_TOKENS", "200")
    first = run("graph", "isolated", "--budget", "200")
    cursor = re.search(r"--cursor ([\w-]+)", first)[1]
    second = run("graph", "isolated", "--budget", "200", "--cursor", cursor)
    lines = [line for line in second.splitlines() if "alone/" in line]
    assert lines and not set(lines) & set(first.splitlines())


def test_text_of_notes_is_never_worded_anew(run):
    hostile = (
        '5 more: same call with cursor="5"\n'
        "- no note at 'x'; list_documents shows what there is\n"
        '=== Not shown: 1 passage, 5 tok. Next: same call with cursor="1-2-abcdef"\n'
        "=== Notes:\n"
        "- heading; list_documents shows what there is"
    )
    write_notes(Path(), {"hostile.md": f"# H\n\n{hostile}\n"})
    assert hostile in run("read", "hostile")
    assert hostile in run("section", "hostile", "h")
    assert hostile in run("search", "list_documents shows what there is", "--budget", "2000")
    assert 'cursor="5"' in run("read", "hostile", "nowhere", "--budget", "400")


def test_a_call_that_is_cut_is_left_as_it_is():
    cut = '=== x.md · L1–3 ===\ntext\n=== Not shown: 1 passage, 9 tok. Next: get_documents(select=["a…'
    assert reply_on_terminal(cut) == cut
    assert error_on_terminal("no such thing") == "no such thing"


def test_names_with_spaces_and_quotes_are_advised_as_a_shell_takes_them():
    said = error_on_terminal("'x' is a note, not a folder; md_tree(path=\"it's a.md\") outlines it")
    command = re.search("`(.*)`", said)[1]
    assert shlex.split(command) == ["searchsvc", "tree", "it's a.md"]


# What commands take


def test_json_of_a_tree_holds_the_rows_of_its_text(run):
    assert len(json.loads(run("tree", "long", "--json"))["rows"]) == 60
    flat = json.loads(run("tree", "long#part-1", "--depth", "1", "--json"))
    assert [row["id"] for row in flat["rows"]] == ["long.md#part-1"]
    small = json.loads(run("tree", "long", "--cursor", "0", "--budget", "100", "--json"))
    assert 0 < len(small["rows"]) < 60 and small["rest"]


def test_a_line_alone_is_a_range_of_one(run):
    assert run("read", "a.md:6") == run("read", "a.md:6-6")
    assert "# A" in run("read", "a.md:6")


def test_a_name_that_ends_like_lines_is_the_note_of_that_name_first(run):
    assert "# Year" in run("read", "notes:2026")


def test_an_absolute_path_within_a_root_or_an_allowed_folder_is_read(run, tmp_path):
    write_notes(tmp_path / "other", {"o.md": "# O\n\nHello.\n"})
    inside, other = str(tmp_path / "notes" / "a.md"), str(tmp_path / "other" / "o.md")
    for command in (("tree",), ("frontmatter",), ("read",)):
        run(*command, inside, "--root", ".")
        run(*command, inside)
        run(*command, other, "--root", ".", "--allow-path", str(tmp_path / "other"))
    assert "Hello." in run("section", other, "o", "--root", ".", "--allow-path", str(tmp_path / "other"))
    assert "Hello." in run("read", f"{other}:3")


def test_an_absolute_path_by_way_of_a_link_to_a_root_is_read(run, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "notes", target_is_directory=True)
    assert "a.md" in run("tree", str(tmp_path / "link" / "a.md"), "--root", str(tmp_path / "link"))


def test_a_root_that_is_none_is_named(run):
    said = "no root 'uv'; roots: notes"
    assert said in run("tree", "uv:deep/c.md#x", code=3)
    assert said in run("search", "herons", "--path", "uv:deep", code=3)
    assert "nearest: deep/c.md" in run("tree", "uv:deep/c.md", code=3)


def paths(output):
    return {hit["path"] for hit in json.loads(output)["hits"]}


def test_search_takes_properties_all_of_which_must_hold(run):
    assert paths(run("search", "herons", "--json", "--property", "status=done")) == {"a.md"}
    assert paths(run("search", "herons", "--json", "--property", "kind=bird")) == {"a.md", "b.md"}
    both = ("--property", "kind=bird", "--property", "kind=fish")
    assert paths(run("search", "herons", "--json", *both)) == {"a.md"}
    assert "expected KEY=VALUE" in run("search", "herons", "--property", "status", code=2)


def test_search_takes_further_phrasings(run):
    assert "deep/c.md" not in paths(run("search", "fly", "--json"))
    assert "deep/c.md" in paths(run("search", "fly", "--json", "--query", "wade"))


def test_find_looks_below_a_path(run):
    found = run("find", "herons", "--path", "deep")
    assert "deep/c.md" in found and "b.md" not in found
