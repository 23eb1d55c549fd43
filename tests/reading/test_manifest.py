import json

import pytest

from searchsvc.config import Config, make_root
from searchsvc.reading.manifest import read_manifest


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "vault"
    (root / "images").mkdir(parents=True)
    (root / "a.md").write_text("# A\n", encoding="utf-8")
    (root / "b.md").write_text("# B\n", encoding="utf-8")
    (root / "images" / "p.png").write_bytes(b"x")
    (tmp_path / "out.md").write_text("# Out\n", encoding="utf-8")
    (root / "link.md").symlink_to(tmp_path / "out.md")
    return root


def read(folder, documents=None, images=None, **settings):
    for name, field, entries in (
        ("index.json", "documents", documents),
        ("images/index.json", "images", images),
    ):
        if entries is not None:
            value = entries if isinstance(entries, str) else json.dumps({field: entries})
            (folder / name).write_text(value, encoding="utf-8")
    return read_manifest(make_root(folder), Config(**settings))


def test_without_index_files_there_is_none(folder):
    assert read(folder) is None


def test_entries_are_read_with_their_defaults(folder):
    made = read(
        folder,
        [{"id": "first", "path": "a.md", "approx_tokens": 5, "extra": 1}, {"id": "x y", "path": "b.md"}],
        [{"id": "1", "file": "images/p.png", "caption": "P"}, {"id": "2", "file": "p.png"}],
    )
    assert made.problems == ()
    assert [(d.id, d.path, d.approx_tokens) for d in made.documents] == [
        ("first", "a.md", 5),
        ("x y", "b.md", None),
    ]
    assert [(i.id, i.file, i.caption) for i in made.images] == [
        ("1", "images/p.png", "P"),
        ("2", "images/p.png", ""),
    ]


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"path": "b.md"}, "no 'id'"),
        ({"id": "x"}, "no 'path'"),
        ({"id": 5, "path": "b.md"}, "expected text"),
        ({"id": " ", "path": "b.md"}, "empty"),
        ({"id": "a#b", "path": "b.md"}, "'#'"),
        ({"id": "a\nb", "path": "b.md"}, "control"),
        ({"id": "ok", "path": "b.md"}, "repeats 'ok'"),
        ({"id": "x", "path": "a.md"}, "repeats 'a.md'"),
        ({"id": "x", "path": "/etc/passwd.md"}, "not relative"),
        ({"id": "x", "path": "C:/b.md"}, "not relative"),
        ({"id": "x", "path": "sub\\b.md"}, "not relative"),
        ({"id": "x", "path": "../out.md"}, "'..'"),
        ({"id": "x", "path": "link.md"}, "outside the root"),
        ({"id": "x", "path": "missing.md"}, "no note"),
        ({"id": "x", "path": "images/p.png"}, "not a Markdown"),
        ({"id": "x", "path": "b.md", "title": 1}, "title is 1"),
        ({"id": "x", "path": "b.md", "approx_tokens": -1}, "approx_tokens is -1"),
        ({"id": "x", "path": "b.md", "approx_tokens": True}, "approx_tokens is true or false"),
        ("b.md", "is text, expected an object"),
    ],
)
def test_every_fault_is_named_with_its_entry_and_costs_only_that(folder, entry, said):
    made = read(folder, [{"id": "ok", "path": "a.md"}, entry, entry])
    assert [document.id for document in made.documents] == ["ok"]
    assert len(made.problems) == 2
    assert all(
        problem.startswith(f"index.json: documents[{n}]") for n, problem in enumerate(made.problems, 1)
    )
    assert all(said in problem and str(folder) not in problem for problem in made.problems)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "line 1, column 2"),
        ("[]", "found a list"),
        ("{}", "expected"),
        ('{"documents": {}}', "expected"),
        ('{"documents": [NaN]}', "NaN"),
        ("[" * 100_000, "no JSON"),
        ('{"documents": [{"id": "a", "id": "b", "path": "a.md"}]}', "twice"),
    ],
)
def test_a_file_that_is_no_index_is_a_problem(folder, text, said):
    made = read(folder, text)
    assert not made.documents
    assert said in made.problems[0]


def test_size_encoding_and_hidden_names_are_checked(folder):
    assert "at most 10" in read(folder, [{"id": "a", "path": "a.md"}], max_index_file_bytes=10).problems[0]
    (folder / "index.json").write_bytes(b"\xff\xfe{}")
    assert "UTF-8" in read(folder).problems[0]
    (folder / "index.json").write_bytes(b"\xef\xbb\xbf" + b'{"documents": [{"id": "a", "path": "a.md"}]}')
    assert read(folder).problems == ()
