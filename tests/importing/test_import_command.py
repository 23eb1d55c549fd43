"""`searchsvc import`: what it prints, how it ends, and that the result can be searched."""

import json
import shutil

import pytest
from click.testing import CliRunner

from searchsvc.cli import main
from searchsvc.import_commands import IMPORT_COMMANDS
from searchsvc.importing import job
from tests.importing.stub_converters import CONVERTERS

for _command in IMPORT_COMMANDS:
    main.add_command(_command)


@pytest.fixture
def run(tmp_path, monkeypatch):
    (tmp_path / "empty.yaml").touch()
    monkeypatch.setenv("SEARCHSVC_CONFIG", str(tmp_path / "empty.yaml"))
    monkeypatch.setenv("SEARCHSVC_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("SEARCHSVC_MODEL", "none")
    books = tmp_path / "books"
    books.mkdir()
    (books / "heron.md").write_text("---\ntitle: Herons\n---\n# Herons\n\nThe heron stands in the reeds.\n")
    (books / "crane.md").write_text("# Cranes\n\nThe crane dances.\n\n![map](none.png)\n")
    monkeypatch.chdir(books)

    def invoke(*arguments, code=0):
        result = CliRunner().invoke(main, arguments)
        assert result.exit_code == code, result.output
        assert "Traceback" not in result.output
        return result

    return invoke


@pytest.fixture
def stubs(monkeypatch):
    """Let PDFs be what the stub converters make of them."""
    real = job.import_documents
    monkeypatch.setattr(job, "import_documents", lambda *a, **o: real(*a, **o, converters=CONVERTERS))


def test_a_folder_is_imported_and_searched_with_the_command_it_prints(run, tmp_path):
    result = run("import", ".")
    lines = result.stdout.splitlines()
    assert lines[0].startswith("imported: ./crane.md -> crane-")
    assert lines[0].endswith(": 1 image not copied: no such file (none.png)")
    assert lines[1].startswith("imported: ./heron.md -> heron-")
    store = str(tmp_path / "data" / "imports")
    assert lines[2] == f"2 of 2 documents are in {store}"
    assert lines[3] == f'to search them: searchsvc search "a question" --root {store}'
    found = json.loads(run("search", "heron reeds", "--root", store, "--json").stdout)
    assert found["hits"][0]["path"].startswith("heron-")
    assert found["hits"][0]["path"].endswith("/index.md")


def test_what_is_unchanged_is_said_and_done_anew_with_force(run):
    run("import", "heron.md")
    assert run("import", "heron.md").stdout.startswith("unchanged: heron.md\n")
    assert run("import", "heron.md", "--force").stdout.startswith("imported: heron.md")


def test_another_folder_and_words_of_the_user_are_obeyed(run, tmp_path):
    into = tmp_path / "my notes"
    result = run(
        "import", "heron.md", "--into", str(into), "--title", "Mine: a\nbook", "--author", "Me",
        "--language", "en-GB",
    )  # fmt: skip
    assert f"--root '{into}'" in result.stdout
    (index,) = into.glob("heron-*/index.md")
    text = index.read_text()
    assert "title: 'Mine: a book'\nauthor: 'Me'\nlanguage: 'en-GB'\n" in text
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "PATH"),
        ((".", "--title", "x"), "a single file, found a folder or pattern"),
        (("heron.md", "crane.md", "--author", "x"), "a single file, found 2 paths"),
        (("heron.md", "--language", "deutsch bitte"), "a tag such as en"),
        (("heron.md", "--timeout", "0"), "timeout"),
        (("heron.md", "--into", "crane.md"), "is a file"),
    ],
)
def test_wrong_usage_ends_with_2(run, arguments, says):
    assert says in run("import", *arguments, code=2).output


def test_some_that_fail_end_with_4_and_the_reason_on_stderr(run):
    result = run("import", "heron.md", "none.pdf", "*.epub", code=4)
    assert "failed: none.pdf: there is no such file or folder" in result.stderr
    assert "failed: *.epub: matches no document" in result.stderr
    assert "1 of 3 documents are in" in result.stdout


def test_a_crash_of_the_converter_is_one_line(run, stubs, tmp_path):
    for word in ("kill", "good"):
        (tmp_path / "books" / f"{word}.pdf").write_text(word)
    result = run("import", ".", code=4)
    assert "failed: ./kill.pdf: the process that read it was ended by SIGKILL" in result.stderr
    assert "imported: ./good.pdf (3 pages) -> good-" in result.stdout


def test_none_that_could_be_imported_ends_with_1(run, tmp_path):
    (tmp_path / "books" / "broken.md").write_bytes(b"\x00\x01" * 100)
    assert "failed: broken.md: looks like binary" in run("import", "broken.md", code=1).stderr
    (tmp_path / "nothing").mkdir()
    assert "no documents found; expected .pdf" in run("import", str(tmp_path / "nothing"), code=1).stderr


def test_an_interruption_ends_with_130_and_says_how_to_go_on(run, monkeypatch):
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(job, "import_documents", interrupt)
    assert "run the command again to go on" in run("import", ".", code=130).stderr


def test_json_has_a_row_for_each_document(run):
    found = json.loads(run("import", "heron.md", "crane.md", "none.pdf", "--json", code=4).stdout)
    assert (found["imported"], found["unchanged"], found["failed"]) == (2, 0, 1)
    assert [(row["path"], row["state"], row["pages"]) for row in found["documents"]] == [
        ("heron.md", "imported", 0), ("crane.md", "imported", 0), ("none.pdf", "failed", 0),
    ]  # fmt: skip
    assert found["documents"][0]["folder"].startswith(found["into"])


def test_a_name_cannot_write_to_the_terminal(run, tmp_path):
    (tmp_path / "books" / "a\x1b[31m\nb.md").write_text("# A\n")
    output = run("import", ".").output
    assert "\x1b" not in output
    assert "imported: ./a\ufffd[31m\ufffdb.md" in output


def test_a_text_too_large_to_be_indexed_is_imported_with_a_notice(run, monkeypatch):
    monkeypatch.setenv("SEARCHSVC_MAX_FILE_BYTES", "1000")
    shutil.copy("heron.md", "long.md")
    with open("long.md", "a", encoding="utf-8") as stream:
        stream.write("word " * 1000)
    assert "at most 1,000 are indexed; raise max_file_bytes" in run("import", "long.md").stdout
