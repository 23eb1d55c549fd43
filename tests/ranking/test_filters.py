import os
import unicodedata

import pytest

from searchsvc.config import Config, Root
from searchsvc.errors import NotFound, QueryError
from searchsvc.index.catalog import Catalog
from searchsvc.service import Service
from tests.notes import write_notes

BODY = "# Note\n\nAll of these notes hold the word beacon.\n"
PATHS = [
    "top.md", "garden/tomatoes.md", "garden/beds/north.md", "garden.md", "Ops/Run Book.md",
    "drafts/[old] plan.md", "drafts/a1.md", "drafts/a2.md", "v1.2/notes.markdown", "caf\u00e9/men\u00fc.md",
    "c#/basics.md",
]  # fmt: skip


@pytest.fixture(scope="module")
def vault(tmp_path_factory):
    folder = tmp_path_factory.mktemp("filters")
    write_notes(folder / "main", {path: BODY for path in PATHS})
    write_notes(folder / "other", {"garden/tomatoes.md": BODY, "only.md": BODY})
    roots = (Root("main", folder / "main"), Root("other", folder / "other"))
    service = Service(Config(roots=roots, data_dir=folder / "data", model="none", instant_model="none"))
    service.index()
    return service


def found(service, **filters):
    return {hit.location for hit in service.search("beacon", top_k=200, **filters).hits}


@pytest.mark.proves("R-filters")
@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("main:garden/tomatoes.md", {"main:garden/tomatoes.md"}),
        ("other:", {"other:garden/tomatoes.md", "only.md"}),
        ("garden/tomatoes", {"main:garden/tomatoes.md", "other:garden/tomatoes.md"}),
        ("main:garden/", {"main:garden/tomatoes.md", "garden/beds/north.md", "garden.md"}),
        ("./garden/beds", {"garden/beds/north.md"}),
        ("garden\\beds\\north.md", {"garden/beds/north.md"}),
        ("ops/run book.MD", {"Ops/Run Book.md"}),
        ("drafts/[old] plan.md", {"drafts/[old] plan.md"}),
        ("drafts/[old]*", {"drafts/[old] plan.md"}),
        ("drafts/a[12].md", {"drafts/a1.md", "drafts/a2.md"}),
        ("drafts/a[!1].md", {"drafts/a2.md"}),
        ("drafts/a?", {"drafts/a1.md", "drafts/a2.md"}),
        ("main:garden/*", {"main:garden/tomatoes.md"}),
        ("main:garden/**", {"main:garden/tomatoes.md", "garden/beds/north.md"}),
        ("**/north.md", {"garden/beds/north.md"}),
        ("**/bed*", {"garden/beds/north.md"}),
        ("tom*.md", {"main:garden/tomatoes.md", "other:garden/tomatoes.md"}),
        ("v1.2", {"v1.2/notes.markdown"}),
        ("v1.2/notes", {"v1.2/notes.markdown"}),
        (unicodedata.normalize("NFD", "café/menü.md"), {"café/menü.md"}),
        ("CAFÉ", {"café/menü.md"}),
        ("c#/basics.md#note", {"c#/basics.md"}),
        ("c#", {"c#/basics.md"}),
    ],
)
def test_a_path_is_a_note_a_folder_or_a_glob(vault, path, wanted):
    assert found(vault, path=path) == wanted


@pytest.mark.parametrize("path", [".", "./", "/", "**", "*", "**/*.m*"])
def test_a_path_may_mean_everything(vault, path):
    assert found(vault, path=path) == found(vault)
    assert len(found(vault)) == len(PATHS) + 2


@pytest.mark.proves("R-filter-unknown")
@pytest.mark.parametrize(
    ("path", "near"),
    [("gardn", "'garden'"), ("garden/tomatos.md", "'garden/tomatoes.md'"), ("drafts/[z-a].md", "'drafts"),
     ("other:drafts", ""), ("../main", ""), ("main:nowhere-at-all/x/y/z", "")],
)  # fmt: skip
def test_an_unknown_path_is_an_error_that_names_the_nearest(vault, path, near):
    with pytest.raises(NotFound, match="no note or folder matches path") as error:
        found(vault, path=path)
    assert near in str(error.value)


def note(**properties):
    return "---\n" + "\n".join(f"{key}: {value}" for key, value in properties.items()) + f"\n---\n{BODY}"


@pytest.fixture(scope="module")
def tagged(tmp_path_factory):
    folder = tmp_path_factory.mktemp("values")
    notes = {
        "a.md": note(tags="[Food/Fruit, garden]", status="growing", rank=3, done="true", due="2026-05-26"),
        "b.md": note(
            tags="food", status="[growing, old]", rank=3.5, done="false", owner="{name: Ann, id: 7}"
        ),
        "c.md": note(tags="[garden]", status="null", rank='"3"'),
        "d.md": BODY,
    }
    write_notes(folder / "notes", notes)
    for name, moment in (("a", 1_779_753_600), ("b", 1_779_760_000), ("c", 1_600_000_000), ("d", 4e9)):
        os.utime(folder / "notes" / f"{name}.md", (moment, moment))
    root = Root("notes", folder / "notes")
    service = Service(Config(roots=(root,), data_dir=folder / "data", model="none", instant_model="none"))
    service.index()
    return service


@pytest.mark.proves("R-filters")
@pytest.mark.parametrize(
    ("tags", "wanted"),
    [(["food"], "ab"), (["#FOOD"], "ab"), (["food/fruit"], "a"), (["food/"], "ab"), (["garden"], "ac"),
     (["garden", "food"], "a"), (["fruit", "garden"], None), (["foo"], None)],
)  # fmt: skip
def test_every_tag_must_be_on_the_note_and_a_tag_holds_those_nested_in_it(tagged, tags, wanted):
    if wanted is None:
        with pytest.raises(NotFound, match="no note has the tag"):
            found(tagged, tags=tags)
    else:
        assert found(tagged, tags=tags) == {f"{name}.md" for name in wanted}


@pytest.mark.proves("R-filters")
@pytest.mark.parametrize(
    ("properties", "wanted"),
    [
        ({"status": "growing"}, "ab"),
        ({"STATUS": "Growing"}, "ab"),
        ({"status": ["growing", "old"]}, "b"),
        ({"status": None}, "cd"),
        ({"rank": 3}, "ac"),
        ({"rank": "3"}, "ac"),
        ({"rank": 3.5}, "b"),
        ({"done": True}, "a"),
        ({"done": "false"}, "b"),
        ({"done": 1}, ""),
        ({"due": "2026-05-26"}, "a"),
        ({"owner": {"name": "ann"}}, "b"),
        ({"owner": {"name": "ann", "id": 8}}, ""),
        ({"owner": "ann"}, ""),
        ({"rank": 3, "status": "growing"}, "a"),
        ({"status": []}, "cd"),
    ],
)
def test_properties_must_have_the_value_or_hold_it(tagged, properties, wanted):
    assert found(tagged, properties=properties) == {f"{name}.md" for name in wanted}


def test_an_unknown_property_is_an_error_that_names_the_nearest(tagged):
    with pytest.raises(NotFound, match="no note has the property 'statu'; nearest: 'status'"):
        found(tagged, properties={"statu": "growing"})


@pytest.mark.proves("R-filters")
@pytest.mark.parametrize(
    ("since", "wanted"),
    [
        ("2026-05-26", "abd"),
        ("2026-05-26T00:00:01", "bd"),
        ("2026-05-26T02:00:00+02:00", "abd"),
        ("2026-05-26T00:00:00-01:00", "bd"),
        ("2020-09-13T12:26:40Z", "abcd"),
        ("2020-09-13T12:26:41Z", "abd"),
        ("1d", "d"),
        ("999999y", "abcd"),
        (" 2H ", "d"),
    ],
)
def test_since_is_a_date_a_moment_or_an_age(tagged, since, wanted):
    assert found(tagged, since=since) == {f"{name}.md" for name in wanted}


@pytest.mark.parametrize("since", ["soon", "2026-13-01", "5 parsecs", "-3d"])
def test_a_since_that_is_no_date_is_refused(tagged, since):
    with pytest.raises(QueryError, match="expected a date"):
        found(tagged, since=since)


def test_filters_that_exist_but_leave_nothing_are_no_error(tagged):
    answer = tagged.semantic_search("beacon", path="d.md", tags=["food"])
    assert answer.text.startswith("Nothing found.")
    assert not answer.ranking.hits


@pytest.mark.proves("R-filters")
def test_filters_apply_before_ranking(tmp_path):
    notes = {f"loud/{n}.md": "# Beacon\n\nbeacon beacon beacon\n" for n in range(300)}
    notes["quiet/x.md"] = f"# Other\n\nThe beacon is mentioned once.{' filler' * 300}\n"
    root = Root("notes", write_notes(tmp_path / "notes", notes))
    service = Service(Config(roots=(root,), data_dir=tmp_path / "data", model="none", instant_model="none"))
    service.index()
    assert "quiet/x.md" not in found(service)
    assert found(service, path="quiet") == {"quiet/x.md"}


def test_a_filter_reads_the_rows_of_all_notes_once(tagged, monkeypatch):
    reads = []
    notes = Catalog.notes
    monkeypatch.setattr(Catalog, "notes", lambda self, ids=None: reads.append(ids) or notes(self, ids))
    found(tagged, path="*.md", since="2000-01-01")
    assert reads.count(None) == 1
