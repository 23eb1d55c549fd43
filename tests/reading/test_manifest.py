import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from searchsvc.config import Config, make_root
from searchsvc.reading.manifest import read_manifest


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "vault"
    (root / "images").mkdir(parents=True)
    (root / "a.md").write_text("# A\n", encoding="utf-8")
    (root / "b.md").write_text("# B\n", encoding="utf-8")
    (root / "images" / "p.png").write_bytes(b"x")
    (root / "images" / "note.md").write_text("# N\n", encoding="utf-8")
    (tmp_path / "out.md").write_text("# Out\n", encoding="utf-8")
    (root / "link.md").symlink_to(tmp_path / "out.md")
    (root / ".hidden.md").write_text("# H\n", encoding="utf-8")
    (root / "images" / ".p.png").write_bytes(b"x")
    (root / "images" / "out.png").symlink_to(tmp_path / "out.md")
    (root / "folder.md").mkdir()
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
        ({"path": "b.md"}, "id is missing"),
        ({"id": "x"}, "path is missing"),
        ({"id": 5, "path": "b.md"}, "expected text"),
        ({"id": " ", "path": "b.md"}, "empty"),
        ({"id": "a#b", "path": "b.md"}, "'#'"),
        ({"id": "a\nb", "path": "b.md"}, "control"),
        ({"id": "ok", "path": "b.md"}, "id 'ok' repeats that of documents[0]"),
        ({"id": "x", "path": "a.md"}, "path 'a.md' repeats that of documents[0]"),
        ({"id": "x", "path": "/etc/passwd.md"}, "not relative"),
        ({"id": "x", "path": "C:/b.md"}, "not relative"),
        ({"id": "x", "path": "sub\\b.md"}, "use '/' between names"),
        ({"id": "a\u2028b", "path": "b.md"}, "control"),
        ({"id": "a\u202eb", "path": "b.md"}, "control"),
        ({"id": "a\ud800", "path": "b.md"}, "surrogate"),
        ({"id": None, "path": "b.md"}, "id is null, expected text"),
        ({"id": "x", "path": ["b.md"]}, "path is a list, expected text"),
        ({"id": "x", "path": ""}, "path is empty"),
        ({"id": "x", "path": "../out.md"}, "path '../out.md' leads outside the root"),
        ({"id": "x", "path": "a/../../out.md"}, "leads outside the root"),
        ({"id": "x", "path": "images/../b.md"}, "has '..' in it"),
        ({"id": "x", "path": "~/b.md"}, "is not written out"),
        ({"id": "x", "path": "b.md\x00"}, "path"),
        ({"id": "x", "path": "\ud800.md"}, "surrogate"),
        ({"id": "x", "path": "https://example.com/b.md"}, "is an address"),
        ({"id": "x", "path": ".hidden.md"}, "left out by rule"),
        ({"id": "x", "path": "images"}, "not a Markdown"),
        ({"id": "x", "path": "folder.md"}, "no file"),
        ({"id": "x", "path": "y" * 5_000 + ".md"}, "longer or deeper"),
        ({"id": "x", "path": "y" * 190 + "/../../z.md"}, "leads outside"),
        ({"id": "x", "path": "/" + "y" * 180}, "not relative"),
        ({"id": "x", "path": "b.md", "summary": "\udfff"}, "summary has half"),
        ({"id": "x", "path": "b.md", "summary": None}, "summary is null"),
        ({"id": "x", "path": "b.md", "approx_tokens": 1.5}, "approx_tokens is 1.5"),
        ({"id": "x", "path": "b.md", "approx_tokens": "5"}, "approx_tokens is text"),
        ({"id": "x", "path": "b.md", "approx_tokens": 10**40}, "expected a whole number from 0"),
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
    made = read(folder, [{"id": "ok", "path": "a.md"}, entry, {"id": "last", "path": "images/note.md"}])
    assert [document.id for document in made.documents] == ["ok", "last"]
    (problem,) = made.problems
    assert problem.startswith("index.json: documents[1]") and said in problem
    assert str(folder) not in problem and problem.isprintable() and len(problem) <= 200


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"file": "p.png"}, "id is missing"),
        ({"id": "x"}, "file is missing"),
        ({"id": "x", "file": 1}, "file is 1, expected text"),
        ({"id": "x", "file": "missing.png"}, "no file at 'missing.png'"),
        ({"id": "x", "file": ".p.png"}, "hidden"),
        ({"id": "x", "file": "images/.p.png"}, "hidden"),
        ({"id": "x", "file": "images"}, "no file"),
        ({"id": "x", "file": "images/out.png"}, "outside the root"),
        ({"id": "x", "file": "out.png"}, "outside the root"),
        ({"id": "x", "file": "../out.md"}, "leads outside"),
        ({"id": "x", "file": "/etc/passwd"}, "not relative"),
        ({"id": "x", "file": "images\\p.png"}, "use '/' between names"),
        ({"id": "x", "file": "p.png", "caption": {}}, "caption is an object"),
        ({"id": "ok", "file": "p.png"}, "id 'ok' repeats that of images[0]"),
        (None, "is null, expected an object"),
    ],
)
def test_faults_of_images_are_named_too(folder, entry, said):
    made = read(folder, images=[{"id": "ok", "file": "p.png"}, entry])
    assert [(image.id, image.file) for image in made.images] == [("ok", "images/p.png")]
    (problem,) = made.problems
    assert problem.startswith("images/index.json: images[1]") and said in problem
    assert str(folder) not in problem


def test_all_faults_of_an_entry_are_named_with_its_id(folder):
    made = read(folder, [{"id": "setup", "path": "../x.md", "title": 5, "approx_tokens": -1}])
    assert made.problems == (
        "index.json: documents[0] (id 'setup'): path '../x.md' leads outside the root",
        "index.json: documents[0] (id 'setup'): title is 5, expected text",
        "index.json: documents[0] (id 'setup'): approx_tokens is -1,"
        " expected a whole number from 0 to 1000000000000",
    )


def test_an_id_counts_as_taken_even_by_an_entry_with_faults(folder):
    made = read(folder, [{"id": "x", "path": "none.md"}, {"id": "x", "path": "b.md"}])
    assert not made.documents and len(made.problems) == 2


def test_problems_are_counted_past_a_hundred_and_both_files_are_read(folder):
    made = read(folder, [1] * 150 + [{"id": "a", "path": "a.md"}], [{"id": "p", "file": "p.png"}, 2])
    assert len(made.problems) == 101 and made.problems[-1] == "and 51 more"
    assert [entry.id for entry in (*made.documents, *made.images)] == ["a", "p"]


def test_names_of_the_files_are_settings_and_a_folder_has_its_own(folder):
    sub = folder / "sub"
    (sub / "pics").mkdir(parents=True)
    (sub / "c.md").write_text("# C\n", encoding="utf-8")
    (sub / "pics" / "q.png").write_bytes(b"x")
    documents = [{"id": "c", "path": "c.md"}, {"id": "n", "path": "b.md"}]
    (sub / "docs.json").write_text(json.dumps({"documents": documents}), encoding="utf-8")
    images = [{"id": "1", "file": "q.png"}, {"id": "2", "file": "pics/q.png"}]
    (sub / "pics" / "i.json").write_text(json.dumps({"images": images}), encoding="utf-8")
    config = Config(documents_index="docs.json", images_index="pics/i.json")
    made = read_manifest(make_root(folder), config, "sub")
    assert [(entry.id, entry.path) for entry in made.documents] == [("c", "sub/c.md")]
    assert [entry.file for entry in made.images] == ["sub/pics/q.png"] * 2
    (problem,) = made.problems
    assert problem.startswith("sub/docs.json: documents[1] (id 'n'): path: no note at 'sub/b.md'")
    assert read_manifest(make_root(folder), config) is None
    assert read_manifest(make_root(folder), config, "none") is None
    assert "outside the root" in read_manifest(make_root(sub), config, "../images").problems[0]


def test_an_index_file_that_is_a_link_out_of_the_root_is_not_read(folder, tmp_path):
    (tmp_path / "secret.json").write_text('{"documents": [{"id": "a", "path": "a.md"}]}', encoding="utf-8")
    (folder / "index.json").symlink_to(tmp_path / "secret.json")
    made = read(folder)
    assert not made.documents and "outside the root" in made.problems[0]
    assert str(tmp_path) not in made.problems[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "line 1, column 2"),
        ("[]", "found a list"),
        ("{}", "found nothing there"),
        ('{"documents": null}', "found null there"),
        ("", "line 1, column 1"),
        ('{"documents": []} x', "line 1, column 19"),
        ('{"documents": {}}', "found an object there"),
        ('{"documents": [NaN]}', "NaN"),
        ('{"documents": [-Infinity]}', "Infinity"),
        ('{"documents": [' + "1" * 5_000 + "]}", "thousands of digits"),
        ("[" * 100_000, "nested too deeply"),
        ('{"documents": [], "documents": []}', "the key 'documents' twice"),
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


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["a.md", "b.md"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["id", "path", "title", "summary", "approx_tokens", "documents", "x"]),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(VALUES | st.lists(VALUES, max_size=5).map(lambda entries: {"documents": entries}))
def test_whatever_the_file_holds_it_is_read_or_a_problem(folder, value):
    (folder / "index.json").write_text(json.dumps(value), encoding="utf-8")
    made = read_manifest(make_root(folder), Config())
    assert all(problem.isprintable() and len(problem) <= 200 for problem in made.problems)
    assert made.problems or len(made.documents) == len(value["documents"])
    assert len({entry.id for entry in made.documents}) == len(made.documents)
    assert {entry.path for entry in made.documents} <= {"a.md", "b.md", "images/note.md"}
