"""The jail: no path leads out of a root or to what is hidden, and what is indexed can be read."""

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchsvc.config import Config, Root, make_root
from searchsvc.errors import AccessDenied, NotFound, ReadingError
from searchsvc.items import Problem
from searchsvc.reading import access
from searchsvc.reading.access import Place, locate, read_bytes
from searchsvc.reading.ignore import IgnoreRules
from searchsvc.reading.walk import walk

settings.register_profile("calm", deadline=None)  # a busy machine is no fault
settings.load_profile("calm")

CONFIG = Config()
SECRET = "forbiddenfruit"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Root:
    """Make a vault with a secret beside it and hidden things in it."""
    folder = tmp_path_factory.mktemp("outside")
    vault = folder / "vault"
    for name in ("sub/deep", ".hidden", "secret dir"):
        (vault / name).mkdir(parents=True)
    for name in ("a.md", "sub/b.md", "sub/deep/c.md", "x.markdown", "Y.MD"):
        (vault / name).write_text("# open\n")
    for name in ("../secret.md", "../vault-private.md", ".env.md", ".hidden/d.md", "plain.txt"):
        (vault / name).write_text(f"# {SECRET}\n")
    for link, target in (
        ("out", ".."),
        ("sub/up", "../.."),
        ("leak.md", "../secret.md"),
        ("h.md", ".env.md"),
    ):
        (vault / link).symlink_to(target)
    return make_root(vault)


NAMES = st.sampled_from(
    """a.md sub deep b.md .. .. . out up leak.md h.md .hidden d.md .env.md secret.md vault vault-private.md ~
    plain.txt x.markdown ..\\ %2e%2e C:""".split()
    + ["", " ", "\x00"]
)


@given(st.lists(NAMES, max_size=8).map("/".join) | st.text(max_size=30))
def test_no_path_leads_out_of_the_root(root: Root, asked: str) -> None:
    try:
        place = locate(asked, root, CONFIG)
    except (AccessDenied, NotFound) as refusal:
        assert str(root.path.parent) not in str(refusal)
        return
    assert place.file.resolve() == place.file and place.file.is_relative_to(root.path)
    assert not any(part.startswith(".") for part in place.path.split("/"))
    assert SECRET not in read_bytes(place, CONFIG).decode()


@pytest.mark.parametrize(
    "asked",
    [
        "x" * 300 + ".md",
        "x/" * 5000 + "a.md",
        "../" * 2000 + "etc/passwd.md",
        "a" * 100_000,
        "\ud800.md",
        "\udcff.md",
    ],
)
def test_paths_that_no_system_takes_are_refused_shortly(root: Root, asked: str) -> None:
    with pytest.raises((ReadingError, NotFound)) as refusal:
        locate(asked, root, CONFIG)
    assert len(str(refusal.value)) < 1500


def test_a_folder_or_a_pipe_named_like_a_note_is_none(tmp_path: Path) -> None:
    (tmp_path / "folder.md").mkdir()
    os.mkfifo(tmp_path / "pipe.md")
    (tmp_path / "a.md").write_text("x")
    root = make_root(tmp_path)
    assert [entry.path for entry in walk(tmp_path, CONFIG)] == ["a.md"]
    for name in ("folder.md", "pipe.md"):
        with pytest.raises(NotFound):
            locate(name, root, CONFIG)
        with pytest.raises(ReadingError):  # and it does not wait for a writer
            read_bytes(Place(root, name), CONFIG)


def test_every_path_that_walking_finds_can_be_read_by_that_name(tmp_path: Path) -> None:
    names = (
        "a.md",
        "~draft.md",
        "~/x.md",
        "C: drive.md",
        "a b.md",
        " a.md",
        "a .md",
        "é.md",
        "e\u0301.md",
        "..a.md",
    )
    names += (
        "sub/..b.md",
        "a..md",
        "%2e%2e.md",
        "x:/y.md",
        "😀.md",
        "&.md",
        "-.md",
        "back\\slash.md",
        "n\nl.md",
    )
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    found = list(walk(tmp_path, Config(include_hidden=True)))
    root, config = make_root(tmp_path), Config(include_hidden=True)
    paths = [entry.path for entry in found if not isinstance(entry, Problem)]
    readable = [path for path in paths if not path.startswith(("~/", "x:/"))]
    assert [locate(path, root, config).path for path in readable] == readable
    assert len(found) == len(names)


def test_a_note_replaced_by_a_link_after_the_check_is_refused(tmp_path: Path) -> None:
    (tmp_path / "vault/sub").mkdir(parents=True)
    (tmp_path / "secret.md").write_text(SECRET)
    (tmp_path / "other").mkdir()
    (tmp_path / "other/b.md").write_text(SECRET)
    for name in ("a.md", "sub/b.md"):
        (tmp_path / "vault" / name).write_text("open")
    root = make_root(tmp_path / "vault")
    places = [locate(name, root, CONFIG) for name in ("a.md", "sub/b.md")]
    (tmp_path / "vault/a.md").unlink()
    (tmp_path / "vault/a.md").symlink_to("../secret.md")
    (tmp_path / "vault/sub").rename(tmp_path / "gone")
    (tmp_path / "vault/sub").symlink_to("../other")
    for place in places:
        with pytest.raises(ReadingError):
            read_bytes(place, CONFIG)


@pytest.mark.parametrize("size", [0, 1, 8_191, 8_192, 8_193, 100_000])
def test_a_file_is_read_whole_up_to_the_limit(root: Root, size: int) -> None:
    (root.path / "sized.md").write_bytes(b"x" * size)
    place = locate("sized.md", root, CONFIG)
    assert read_bytes(place, CONFIG, max(size, 1)) == b"x" * size
    if size > 1:
        with pytest.raises(ReadingError):
            read_bytes(place, CONFIG, size - 1)


def test_an_unreadable_folder_is_an_error_that_names_no_place(
    root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(self: Path) -> os.stat_result:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "lstat", denied)
    with pytest.raises(ReadingError, match="Permission denied") as refusal:
        locate("a.md", root, CONFIG)
    assert str(root.path) not in str(refusal.value)


def test_hidden_names_stay_hidden_in_any_letter_case(tmp_path: Path) -> None:
    rules = IgnoreRules(tmp_path, Config(include_hidden=True))
    assert all(rules.hides(f"{name}/x.md") for name in (".git", ".GIT", ".Obsidian", "a/.Trash"))
    assert not rules.hides(".notes/x.md")


@pytest.mark.parametrize("line", ["!", "\\", "[z-a]", "a\\", "[[:alpha:]]", "[", "**", "///", "\x00", "é["])
def test_a_line_that_is_no_pattern_spoils_neither_the_walk_nor_the_other_lines(
    tmp_path: Path, line: str
) -> None:
    (tmp_path / ".gitignore").write_text(
        f"no.md\n{line}\nneither.md\n" if line != "**" else "no.md\nneither.md\n"
    )
    for name in ("no.md", "neither.md", "yes.md"):
        (tmp_path / name).write_text("x")
    assert [entry.path for entry in walk(tmp_path, CONFIG)] == ["yes.md"]


def test_the_deepest_ignore_file_that_says_something_wins_but_not_over_a_folder(tmp_path: Path) -> None:
    files = {
        ".gitignore": "*.log.md\nbuild/\n",
        "sub/.gitignore": "!keep.log.md\n",
        "build/.gitignore": "!x.md\n",
    }
    notes = ("a.log.md", "sub/keep.log.md", "sub/b.log.md", "build/x.md", "sub/deep/keep.log.md")
    files |= dict.fromkeys(notes, "")
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert [entry.path for entry in walk(tmp_path, CONFIG)] == ["sub/keep.log.md", "sub/deep/keep.log.md"]
    no_git = [entry.path for entry in walk(tmp_path, Config(use_gitignore=False))]
    assert "a.log.md" in no_git and "build/x.md" in no_git


def test_an_ignore_file_that_is_no_file_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").mkdir()
    os.mkfifo(tmp_path / ".searchsvcignore")
    (tmp_path / "a.md").write_text("x")
    assert [entry.path for entry in walk(tmp_path, CONFIG)] == ["a.md"]


@pytest.mark.parametrize("asked", ["private/x.md", "PRIVATE/X.md", "Node_Modules/x.md", "cafe\u0301/x.md"])
def test_rules_know_a_file_by_its_listed_name_where_it_opens_under_others(tmp_path, monkeypatch, asked):
    """As on macOS: here the name that is asked for does not exist, there it opens the file."""
    for name in ("Private", "node_modules", "caf\u00e9"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.md").write_text("secret")
    (tmp_path / ".gitignore").write_text("Private/\ncaf\u00e9/\n", encoding="utf-8")
    monkeypatch.setattr(access, "_OPENS_OTHER_SPELLINGS", True)
    with pytest.raises(AccessDenied, match="left out by rule"):
        locate(asked, Root("notes", tmp_path), CONFIG)


def test_a_note_asked_for_in_another_spelling_is_named_as_it_is_listed(tmp_path, monkeypatch):
    (tmp_path / "Guides").mkdir()
    (tmp_path / "Guides" / "Start.md").write_text("text")
    monkeypatch.setattr(access, "_OPENS_OTHER_SPELLINGS", True)
    assert locate("guides/start.MD", Root("notes", tmp_path), CONFIG).path == "Guides/Start.md"
    assert locate("Guides/Start.md", Root("notes", tmp_path), CONFIG).path == "Guides/Start.md"
    with pytest.raises(NotFound):
        locate("guides/begin.md", Root("notes", tmp_path), CONFIG)
