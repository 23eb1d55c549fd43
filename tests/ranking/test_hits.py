import re

import pytest

from tests.notes import open_service, write_notes

NOTES = {
    "a.md": "---\naliases: [lighthouse]\ntags: [coast]\nkeeper: Elspeth\n---\n# Beacons\n\nIntro.\n\n"
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


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    notes = {
        "names.md": "# Hosts\n\nCredentials for pypi are kept by OAuth2Client.\n\n## All\n\nAsk pypi.org.\n",
        "中文.md": "# 中文\n\n令牌每小时更新一次。\n\n## 分开\n\n令牌。更新。每小时。\n",
        "日本.md": "# 日本\n\n京都と東京。\n\n## 府\n\n東京都の認証方法。\n",
        "kin.md": "# Kin\n\nAll configurations are here.\n",
        "self.md": "# Self\n\nNo config is here.\n",
    }
    folder = tmp_path_factory.mktemp("words")
    service = open_service(write_notes(folder / "notes", notes), folder / "data")
    service.index()
    return service


@pytest.mark.parametrize(
    ("query", "found", "said"),
    [
        ("pypi.org credentials", "names.md#_intro", "credentials, pypi"),
        ("pypi.org credentials", "names.md#all", "pypi.org"),
        ("OAuth2Client", "names.md#_intro", "oauth2client"),
        ("ClientServer", "names.md#_intro", "client"),
        ("令牌每小时更新几次", "中文.md#_intro", "令牌每小时更新"),
        ("令牌每小时更新几次", "中文.md#分开", "每小时, 令牌, 更新"),
        ("東京都の認証", "日本.md#府", "東京都の認証"),
        ("東京都", "日本.md#_intro", "東京, 京都"),
        ("東京都と京都", "日本.md#_intro", "京都と, 東京"),
    ],
)
def test_a_hit_names_only_what_it_shares_with_the_question(words, query, found, said):
    assert sorted(why(words, query, found)[0].split(", ")) == sorted(said.split(", "))


def test_a_word_that_a_section_holds_a_form_of_only_is_marked(words):
    text = words.md_find("config").text
    assert re.search(r"kin\.md#_intro · L1-3 · \d+ tok · ~config$", text, re.MULTILINE)
    assert re.search(r"self\.md#_intro · L1-3 · \d+ tok · config$", text, re.MULTILINE)


@pytest.mark.parametrize(
    ("query", "found", "place"),
    [
        ("lamp", "a.md#lamps", "heading"),
        ("lighthouse", "a.md#_intro", "alias"),
        ("coast", "a.md#_intro", "tags/properties"),
        ("elspeth", "a.md#_intro", "tags/properties"),
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
