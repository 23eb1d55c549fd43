import pytest

from tests.notes import open_service, write_notes

NOTES = {
    "a.md": "---\naliases: [lighthouse]\ntags: [coast]\n---\n# Beacons\n\nIntro.\n\n"
    "## Lamps\n\nThe lamp of a beacon burns oil.\n",
    "b.md": "# Ships\n\nShips look for [the beacon lamp](a.md#lamps).\n",
}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hits")
    service = open_service(write_notes(folder / "notes", NOTES), folder / "data")
    service.index()
    return service


def why(service, query, found):
    return next(hit.why for hit in service.search(query).hits if hit.id == found)


def test_a_hit_says_which_words_matched_as_they_were_asked(service):
    assert why(service, "Burning OIL", "a.md#lamps")[0] == "burning, oil"


@pytest.mark.parametrize(
    ("query", "found", "place"),
    [
        ("lamp", "a.md#lamps", "heading"),
        ("lighthouse", "a.md#_intro", "alias"),
        ("coast", "a.md#_intro", "tags"),
        ("beacon", "a.md#lamps", "links"),
        ("ships", "b.md#_intro", "title"),
    ],
)
def test_a_hit_says_where_beside_its_body_the_words_stand(service, query, found, place):
    assert place in why(service, query, found)[1].split("+")


@pytest.mark.proves("R-explain")
def test_the_link_channel_has_what_links_call_a_section(service):
    hit = next(hit for hit in service.search("beacon", explain=True).hits if hit.id == "a.md#lamps")
    assert hit.channels["link"].rank == 1
    assert hit.channels["link"].score > 0


def test_copies_of_a_text_are_named_with_the_one_that_is_shown(tmp_path):
    text = "# Licence\n\nPermission is granted to anyone who asks.\n"
    service = open_service(
        write_notes(tmp_path / "notes", {f"{n}.md": text for n in "abcdef"}), tmp_path / "d"
    )
    service.index()
    first, second, *_ = service.search("permission granted").hits
    assert first.id == "a.md#_intro"
    assert first.twins == ("b.md#_intro", "c.md#_intro", "d.md#_intro")
    assert second.id == "b.md#_intro"
    assert not second.twins
