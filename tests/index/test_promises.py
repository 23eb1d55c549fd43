"""What the whole product promises, from notes on disk to the reply, by words alone."""

import re
import socket
from pathlib import Path

import pytest

from searchsvc.config import Config, Root
from searchsvc.errors import NotFound
from searchsvc.service import Service
from searchsvc.tokens import cost

NOTES = {
    "keys.md": "---\ntags: [ops/security]\nowner: Ana\n---\n# Keys\n\nAbout keys.\n\n## Rotate keys\n\n"
    "Rotate the signing keys every ninety days.\n\n## Store keys\n\nKeep keys in the vault.\n",
    "guides/deploy.md": "---\ntags: [ops]\n---\n# Deploy\n\n## Rollback\n\nRoll back a broken deployment.\n\n"
    "    exact   spacing\tand tabs\n\n## Canary\n\nSend a share of traffic first.\n",
    "guides/café.md": "# Menü\n\n## Crème brûlée\n\nZucker karamellisieren.\n\n## 菜单\n\n"
    "今天的特色菜是北京烤鸭\n",
    **{f"log/{n:02}.md": f"# Day {n}\n\nThe deployment of day {n} went {'on and ' * n}\n" for n in range(25)},
    "secret/.hidden.md": "hidden deployment\n",
    "drafts/ignored.md": "ignored deployment\n",
    ".searchsvcignore": "drafts/\n",
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("promises")
    for path, text in NOTES.items():
        file = folder / "notes" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return folder


def service_of(folder: Path, data: str = "data", **settings: object) -> Service:
    settings = {"model": "none", "instant_model": "none", "workers": 1, **settings}
    config = Config(roots=(Root("notes", folder / "notes"),), data_dir=folder / data, **settings)  # type: ignore[arg-type]
    service = Service(config)
    service.index()
    return service


@pytest.fixture(scope="module")
def service(folder: Path) -> Service:
    return service_of(folder)


@pytest.mark.proves("R-sections")
@pytest.mark.proves("R-ids")
@pytest.mark.proves("R-verbatim")
def test_a_hit_is_a_section_with_its_id_lines_and_verbatim_text(service, folder):
    hit = service.search("roll back a broken deployment").hits[0]
    assert hit.id == "guides/deploy.md#rollback"
    lines = (folder / "notes/guides/deploy.md").read_text().split("\n")
    assert hit.text == "\n".join(lines[hit.section.line_start - 1 : hit.section.line_end])
    assert "    exact   spacing\tand tabs" in service.semantic_search("rollback", max_tokens=2000).text


@pytest.mark.proves("R-budget")
@pytest.mark.parametrize("budget", [100, 150, 300, 700, 2000])
def test_no_reply_costs_more_than_its_budget(service, budget):
    for query in ("deployment", "rotate keys", "北京烤鸭", "nothing like this zebra"):
        for answer in (
            service.semantic_search(query, max_tokens=budget),
            service.md_find(query, max_tokens=budget),
        ):
            assert cost(answer.text) <= budget
            assert answer.cost <= budget


@pytest.mark.proves("R-rest")
def test_following_the_cursor_lists_every_section_once(service):
    listed: list[str] = []
    cursor = ""
    for _ in range(60):
        answer = service.semantic_search("deployment", max_tokens=200, detail="list", cursor=cursor)
        listed += [hit.id for hit, _ in answer.shown]
        cursor = answer.cursor
        if not cursor:
            break
    assert not cursor
    assert len(listed) == len(set(listed)) == service.search("deployment", top_k=200).total


@pytest.mark.proves("R-filters")
def test_filters_are_exact(service):
    assert {hit.path for hit in service.search("deployment", path="guides", top_k=50).hits} == {
        "guides/deploy.md"
    }
    assert {hit.path for hit in service.search("keys", tags=["ops"], top_k=50).hits} == {"keys.md"}
    assert {hit.path for hit in service.search("keys", properties={"owner": "Ana"}).hits} == {"keys.md"}
    assert service.search("keys", tags=["ops/security"], properties={"owner": "Bob"}).hits == ()
    assert {hit.path for hit in service.search("deployment", path="log/0*.md", top_k=50).hits} == {
        f"log/{n:02}.md" for n in range(10)
    }


@pytest.mark.proves("R-filter-unknown")
def test_a_filter_that_names_nothing_says_what_is_near(service):
    with pytest.raises(NotFound, match="guides"):
        service.search("deployment", path="guide")
    with pytest.raises(NotFound, match="ops"):
        service.search("deployment", tags=["opps"])


@pytest.mark.proves("R-languages")
@pytest.mark.parametrize("query", ["creme brulee", "CRÈME BRÛLÉE", "北京烤鸭", "烤鸭"])
def test_accents_case_and_texts_without_blanks_are_no_obstacle(service, query):
    assert service.search(query).hits[0].path == "guides/café.md"


@pytest.mark.proves("R-explain")
def test_an_explained_hit_says_what_each_channel_and_term_gave(service):
    hit = service.search("rotate signing keys", explain=True).hits[0]
    assert hit.id == "keys.md#rotate-keys"
    assert hit.channels["lexical"].rank == 1
    assert all(score > 0 for score in hit.terms.values())
    assert hit.terms


@pytest.mark.proves("R-honest-nothing")
def test_a_question_without_an_answer_is_told_so(service):
    answer = service.semantic_search("photosynthesis chlorophyll")
    assert not answer.ranking.relevant
    assert re.search("nothing", answer.text, re.IGNORECASE)


@pytest.mark.proves("R-notices")
def test_a_reply_without_vectors_says_so(folder):
    service = service_of(folder, "other", model="minilm-static-256")
    ranking = service.search("rotate keys")
    assert ranking.hits
    assert any("minilm-static-256" in notice for notice in ranking.notices)


@pytest.mark.proves("R-deterministic")
def test_an_index_made_in_pieces_answers_like_one_made_at_once(folder, tmp_path):
    (tmp_path / "notes").mkdir()
    pieces = service_of(tmp_path)
    for path, text in NOTES.items():
        file = tmp_path / "notes" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        pieces.index()
    once = service_of(folder)
    for query in ("deployment", "rotate keys", "vault", "烤鸭"):
        first = [hit.id for hit in once.search(query, top_k=20).hits]
        assert first == [hit.id for hit in once.search(query, top_k=20).hits]
        assert {hit.id for hit in pieces.search(query, top_k=200).hits} == {
            hit.id for hit in once.search(query, top_k=200).hits
        }
        assert pieces.search(query).hits[0].id == first[0]


@pytest.mark.proves("R-ignored")
def test_hidden_and_ignored_notes_are_neither_found_nor_listed(service):
    found = {
        hit.path
        for query in ("hidden", "ignored", "deployment")
        for hit in service.search(query, top_k=200).hits
    }
    assert not found & {"secret/.hidden.md", "drafts/ignored.md"}


@pytest.mark.proves("R-read-only")
def test_nothing_is_written_into_a_root(folder):
    def state() -> dict[str, tuple[int, int]]:
        files = sorted((folder / "notes").rglob("*"))
        return {str(file): (file.stat().st_mtime_ns, file.stat().st_size) for file in files}

    before = state()
    service = service_of(folder, "fresh")
    service.semantic_search("deployment")
    service.md_find("deployment")
    service.status()
    assert state() == before


@pytest.mark.proves("R-offline")
def test_indexing_embedding_and_searching_open_no_connection(folder, monkeypatch):
    def refuse(*args: object) -> None:
        raise AssertionError("a connection was opened")

    for name in ("connect", "connect_ex", "sendto"):
        monkeypatch.setattr(socket.socket, name, refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    service = service_of(folder, "offline", model="minilm-static-256")
    assert service.embed().embedded > 0
    assert service.search("rotate keys", mode="vector").hits


@pytest.mark.proves("R-freshness")
def test_a_changed_note_is_answered_from_as_it_is_now(tmp_path):
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "a.md").write_text("# A\n\nalpha and beta\n")
    (notes / "b.md").write_text("# B\n\nalpha and gamma\n")
    service = service_of(tmp_path)
    (notes / "a.md").write_text("# A\n\nnew first line\n\nalpha and delta\n")
    (notes / "b.md").unlink()
    (hit,) = service.search("alpha").hits
    assert "delta" in hit.text
    assert service.search("beta").hits == ()
