import threading
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
import pytest
from filelock import FileLock

from searchsvc.config import Config, Root, make_root
from searchsvc.embedding.base import Matrix, Passage, Profile
from searchsvc.errors import ConfigError, EmbeddingError, IndexFault, NotFound, QueryError
from searchsvc.service import MIN_TOKENS, Service
from searchsvc.tokens import cost
from searchsvc.vault import Vault
from tests.notes import open_service, write_notes

AXES = {
    "tomatoes": "tomatoes watering blight compost heap soup stock plant vegetable love-apples",
    "keys": "keys credentials renewed secret password rotating expire",
    "database": "database failover replica primary promote outage",
}


class MeaningEmbedder:
    """Knows a few topics by their words; questions about other matters are near no passage."""

    def __init__(self, name: str) -> None:
        self.profile = Profile(name, "test", "0", 8, max_tokens=100)

    def encode_query(self, text: str) -> np.ndarray:
        return self._vector(text, strange=7)

    def encode_passages(self, passages: Iterable[Passage]) -> Iterator[Matrix]:
        for passage in passages:
            yield self._vector(f"{passage.context} {passage.text}", strange=6)[None, :]

    def _vector(self, text: str, strange: int) -> np.ndarray:
        words = set(text.lower().replace(".", " ").replace(",", " ").split())
        vector = np.random.default_rng(sum(text.encode())).normal(0, 0.05, 8).astype(np.float32)
        for axis, topic in enumerate(AXES.values()):
            vector[axis] += len(words & set(topic.split()))
        vector[strange] += vector[: len(AXES)].max() < 0.5
        return vector / np.linalg.norm(vector) if text.strip() else np.zeros(8, np.float32)


@pytest.fixture
def models(monkeypatch):
    """Loaders by model name: each returns an embedder, or waits, or raises."""
    loaders = {"good": lambda: MeaningEmbedder("good"), "quick": lambda: MeaningEmbedder("quick")}
    monkeypatch.setattr("searchsvc.models.load", lambda choice: loaders[choice.model]())
    monkeypatch.setattr("searchsvc.models.load_card", loaders.__getitem__)
    return loaders


@pytest.fixture
def service(tmp_path):
    service = open_service(write_notes(tmp_path / "notes"), tmp_path / "data")
    service.index()
    return service


def note_file(service, path):
    return service.vaults[0].file(path)


def ids(ranking):
    return [hit.id for hit in ranking.hits]


def with_roots(folder, roots, **settings):
    made = tuple(Root(name, write_notes(folder / name, notes)) for name, notes in roots.items())
    service = Service(
        Config(roots=made, data_dir=folder / "data", model="none", instant_model="none", **settings)
    )
    service.index()
    return service


# Questions


def test_a_question_finds_the_section_that_answers_it(service):
    best = service.search("how often to water tomatoes").hits[0]
    assert best.id == "garden/tomatoes.md#watering"
    assert (best.section.line_start, best.section.line_end) == (9, 12)
    assert best.text.startswith("## Watering\n")


@pytest.mark.parametrize("query", ["", "   ", "\n\t"])
def test_an_empty_question_is_refused(service, query):
    with pytest.raises(QueryError, match="the query is empty"):
        service.search(query)


@pytest.mark.parametrize("query", ["?!", "...", "\u200b", "—", "the", "of the and", "¿?", "#", "\ud800"])
def test_punctuation_and_stop_words_are_answered_one_way_or_another(service, query):
    answer = service.semantic_search(query, max_tokens=MIN_TOKENS)
    assert answer.text
    assert answer.cost <= MIN_TOKENS
    assert service.md_find(query, max_tokens=MIN_TOKENS).cost <= MIN_TOKENS


@pytest.mark.parametrize("word", ["tomatoes ", "认证", "a", "? "])
def test_a_question_of_ten_thousand_characters_is_answered(service, word):
    query = (word * 10_000)[:10_000]
    assert service.semantic_search(query, max_tokens=200).cost <= 200
    assert service.md_find(query, max_tokens=200).cost <= 200


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"top_k": 0}, "top_k is 0"),
        ({"top_k": 201}, "top_k is 201"),
        ({"mode": "magic"}, "mode is 'magic'"),
        ({"queries": ["x"] * 9}, "9 further queries"),
    ],
)
def test_a_question_that_cannot_be_asked_is_refused(service, arguments, said):
    with pytest.raises(QueryError, match=said):
        service.search("tomatoes", **arguments)


def test_a_budget_too_small_or_an_unknown_detail_is_refused(service):
    with pytest.raises(QueryError, match="max_tokens is 99, expected at least 100"):
        service.semantic_search("tomatoes", max_tokens=99)
    with pytest.raises(QueryError, match="detail is 'long'"):
        service.semantic_search("tomatoes", detail="long")


def test_a_service_needs_roots_and_an_index(tmp_path):
    with pytest.raises(ConfigError):
        Service(Config())
    service = open_service(write_notes(tmp_path / "notes"), tmp_path / "data")
    with pytest.raises(IndexFault, match="searchsvc index"):
        service.search("tomatoes")


def test_a_second_phrasing_finds_what_the_first_misses_and_the_first_counts_most(service):
    assert "kitchen/soup.md#stock" not in ids(service.search("watering"))
    found = ids(service.search("watering", queries=["simmer bones", ""]))
    assert found[0] == "garden/tomatoes.md#watering"
    assert "kitchen/soup.md#stock" in found


@pytest.mark.proves("R-explain")
def test_an_explained_hit_has_every_channel_and_terms_that_sum_to_its_score_by_words(service):
    hits = service.search("deeply in the morning, tomatoes ripe stock", explain=True).hits
    for hit in hits:
        assert set(hit.channels) == {"lexical", "link", "title"}
        by_words = hit.channels["lexical"].score + hit.channels["link"].score
        assert sum(hit.terms.values()) == pytest.approx(
            by_words, abs=0.001 if not hit.channels["title"].rank else 0.12
        )
    assert sorted(hit.channels["lexical"].rank for hit in hits)[:2] == [1, 2]
    assert {"deepli", "morn", "tomato"} in [set(hit.terms) for hit in hits]
    assert not service.search("water tomatoes").hits[0].terms


@pytest.mark.proves("R-honest-nothing")
def test_a_question_about_other_matters_gets_nothing_relevant_and_weak_hits(service):
    answer = service.semantic_search("quarterly revenue of the overseas plants", mode="lexical")
    assert answer.text.startswith("Nothing relevant")
    assert not answer.ranking.relevant
    assert len(answer.shown) <= 3
    assert service.semantic_search("xylophone").text.startswith("Nothing found")


@pytest.mark.proves("R-rest")
@pytest.mark.parametrize("budget", [100, 130, 300, 1000])
def test_pages_lead_through_all_ties_once_in_order_of_their_addresses(tmp_path, budget):
    notes = {f"{n:02}.md": f"# Note\n\nbeacon {'x' * n}\n" for n in range(30)}
    service = with_roots(tmp_path, {"b": notes, "a": {"only.md": notes["07.md"]}})
    note_file(service, "05.md").write_text("# Note\n\nbeacon changed\n")
    service.index()
    seen, cursor = [], ""
    while True:
        answer = service.semantic_search("beacon", max_tokens=budget, top_k=7, cursor=cursor)
        seen += [hit.id for hit, _ in answer.shown]
        cursor = answer.cursor
        if not cursor:
            break
    whole = ids(service.search("beacon", top_k=200))
    assert seen == whole
    assert sorted(whole) == sorted({*(f"{n:02}.md#_intro" for n in range(30)), "only.md#_intro"})


@pytest.mark.proves("R-deterministic")
def test_equally_good_sections_stand_in_order_of_root_path_and_line_whatever_the_history(tmp_path):
    text = "# Note\n\n## A\n\nbeacon one\n\n## B\n\nbeacon two\n"
    service = with_roots(tmp_path, {"b": {"x.md": text, "y.md": text + "\n"}, "a": {"z.md": text}})
    before = ids(service.search("beacon", top_k=50))
    assert before[:2] == ["z.md#a", "z.md#b"]
    file = note_file(service, "x.md")
    file.write_text("# Away\n")
    service.index()
    file.write_text(text)
    service.index()
    assert ids(service.search("beacon", top_k=50)) == before


# Several roots


def test_a_path_that_two_roots_hold_is_named_with_its_root_and_found_by_that_name(tmp_path):
    service = with_roots(tmp_path, {"one": {"a.md": "# A\n\nbeacon\n"}, "two": {"a.md": "# A\n\na beacon\n"}})
    assert set(ids(service.search("beacon"))) == {"one:a.md#_intro", "two:a.md#_intro"}
    assert ids(service.search("beacon", path="two:a.md")) == ["two:a.md#_intro"]
    assert ids(service.search("beacon", path="one:")) == ["one:a.md#_intro"]
    assert "one:a.md" in service.md_find("beacon").text
    assert "two:a.md" not in service.md_find("beacon", vault_path="one").text
    with pytest.raises(NotFound, match="there are: one, two"):
        service.md_find("beacon", vault_path="three")


def test_md_find_of_a_question_without_a_match_names_the_hubs(service):
    text = service.md_find("zymurgy").text
    assert text.startswith('No match for "zymurgy"')
    assert "hub: garden/tomatoes.md" in text


def test_md_find_counts_related_words(tmp_path):
    service = with_roots(
        tmp_path, {"one": {"a.md": "# A\n\nEl aislamiento térmico.\n", "b.md": "# B\n\nOtra.\n"}}
    )
    assert "a.md" in service.md_find("aislar").text


# Freshness


@pytest.mark.proves("R-freshness")
def test_changed_and_deleted_notes_are_answered_as_they_are_now(service):
    note_file(service, "kitchen/soup.md").write_text(
        "# Soup\n\nNew line.\n\n## Stock\n\nStock of mushrooms.\n"
    )
    note_file(service, "garden/compost.md").unlink()
    note_file(service, "garden/tomatoes.md").rename(note_file(service, "garden/love-apples.md"))
    answer = service.semantic_search("stock")
    assert "mushrooms" in answer.text
    assert "bones for six hours" not in answer.text
    assert "garden/compost.md" not in {hit.path for hit in service.search("turn the heap").hits}
    assert "garden/tomatoes.md" not in {hit.path for hit in service.search("watering tomatoes").hits}
    (stock,) = [hit for hit, _ in answer.shown if hit.section.title == "Stock"]
    assert (stock.section.line_start, stock.section.line_end) == (5, 7)


@pytest.mark.proves("R-freshness")
def test_a_note_that_became_a_folder_is_gone(service):
    file = note_file(service, "kitchen/soup.md")
    file.unlink()
    file.mkdir()
    assert "kitchen/soup.md" not in {hit.path for hit in service.search("stock").hits}


@pytest.mark.proves("R-freshness")
def test_a_note_that_can_no_longer_be_read_is_not_shown(service, monkeypatch):
    def refuse(place, config):
        raise PermissionError(13, "Permission denied")

    note_file(service, "kitchen/soup.md").chmod(0o200)
    monkeypatch.setattr("searchsvc.indexing.read_bytes", refuse)
    assert "kitchen/soup.md" not in {hit.path for hit in service.search("stock").hits}
    assert [problem.path for problem in service.status().roots[0].problems] == ["kitchen/soup.md"]


@pytest.mark.proves("R-freshness")
def test_a_note_that_became_no_text_is_not_shown_until_it_is_one_again(service):
    file = note_file(service, "kitchen/soup.md")
    file.write_bytes(b"# Soup\x00\x01\x02" * 50)
    assert not [hit for hit in service.search("stock").hits if "Simmer" in hit.text]
    file.write_text("# Soup\n\n## Stock\n\nSimmer again.\n")
    service.index()
    assert ids(service.search("stock"))[0] == "kitchen/soup.md#stock"


@pytest.mark.proves("R-freshness")
def test_a_note_that_changes_all_the_time_is_left_out_and_loops_for_ever_never(service, monkeypatch):
    refreshed = []

    def refresh(self, paths):
        refreshed.append(paths)
        return True

    monkeypatch.setattr(Vault, "refresh", refresh)
    note_file(service, "kitchen/soup.md").write_text("# Soup\n\n## Stock\n\nAlways another stock.\n")
    ranking = service.search("stock tomatoes")
    assert len(refreshed) == 3
    assert "kitchen/soup.md" not in {hit.path for hit in ranking.hits}
    assert ranking.total == len(ranking.hits) > 0
    assert any("1 notes have just changed" in notice for notice in ranking.notices)


@pytest.mark.proves("R-notices")
def test_while_another_process_writes_changed_notes_are_left_out_and_the_rest_is_paged(service):
    note_file(service, "garden/tomatoes.md").write_text("# Tomatoes\n\nOther text of tomatoes.\n")
    with FileLock(service.vaults[0].layout.lock):
        answer = service.semantic_search("tomatoes watering", top_k=1, max_tokens=400)
        seen = [hit.path for hit, _ in answer.shown]
        while answer.cursor:
            answer = service.semantic_search(
                "tomatoes watering", top_k=1, max_tokens=400, cursor=answer.cursor
            )
            seen += [hit.path for hit, _ in answer.shown]
    assert "garden/tomatoes.md" not in seen
    assert len(seen) == answer.ranking.total
    assert "have just changed and are left out" in answer.text
    assert "Other text" in service.semantic_search("tomatoes").text


# Models


def embedded(tmp_path, *, model="good", **settings):
    service = open_service(write_notes(tmp_path / "notes"), tmp_path / "data", model=model, **settings)
    service.index()
    service.embed()
    return service


def test_a_question_in_other_words_is_found_by_meaning(tmp_path, models):
    service = embedded(tmp_path)
    best = service.search("secret password expire", explain=True).hits[0]
    assert best.id == "ops/runbook.md#rotating-keys"
    assert best.channels["vector"].rank == 1
    assert "meaning" in best.why[-1]


@pytest.mark.proves("R-honest-nothing")
def test_mode_vector_says_so_when_nothing_is_near(tmp_path, models):
    service = embedded(tmp_path)
    assert service.search("secret password", mode="vector").relevant
    answer = service.semantic_search("zzz qqq", mode="vector")
    assert not answer.ranking.relevant
    assert answer.text.startswith("Nothing relevant: no section answers the question.")
    assert not service.search("zzz qqq").relevant


def test_mode_vector_says_when_it_cannot_tell_what_is_relevant(tmp_path, models):
    ranking = embedded(tmp_path).search("wie kann ich die Datenbank für das Team wechseln", mode="vector")
    assert ranking.hits
    assert any("cannot tell whether anything here is relevant" in notice for notice in ranking.notices)


def test_a_question_that_the_model_does_not_read_is_judged_by_words_and_that_is_said(tmp_path, models):
    service = embedded(tmp_path)
    for question in ("wie kann ich die Datenbank für das Team wechseln", "怎样给西红柿浇水 tomatoes"):
        ranking = service.search(question)
        assert ranking.relevance is None
        assert not ranking.relevant
        assert any("does not read the language" in notice for notice in ranking.notices)
    assert not service.search("zzz qqq").notices


def test_what_is_found_by_meaning_alone_is_said_to_be(tmp_path, models):
    service = embedded(tmp_path)
    alone = service.search("secret password expire")
    assert alone.relevant
    assert any("no note holds any of these words" in notice for notice in alone.notices)
    assert not service.search("secret keys expire").notices


def test_a_misspelt_word_is_taken_for_the_one_that_was_meant_and_that_is_said(service):
    ranking = service.search("how often do tomatoes get watter")
    assert ids(ranking)[0] == "garden/tomatoes.md#watering"
    assert ranking.notices == ('no note holds "watter": taken for water',)


def test_a_question_in_a_language_that_the_notes_are_not_in_is_said_to_be(tmp_path, models):
    service = embedded(tmp_path)
    foreign = service.search("wie oft sollen die tomatoes und der watering sein?")
    assert any("ask in the language of the notes" in notice for notice in foreign.notices)
    assert not service.search("how often do tomatoes get water").notices


def test_mode_vector_without_a_model_is_an_error(service):
    with pytest.raises(EmbeddingError, match="needs vectors: no model configured"):
        service.search("tomatoes", mode="vector")


@pytest.mark.proves("R-notices")
def test_while_a_model_loads_an_impatient_service_answers_by_words(tmp_path, models):
    gate = threading.Event()
    models["good"] = lambda: gate.wait() and MeaningEmbedder("good")
    folder = write_notes(tmp_path / "notes")
    config = Config(
        roots=(Root("notes", folder),), data_dir=tmp_path / "data", model="good", instant_model="none"
    )
    service = Service(config, patient=False)
    service.index()
    ranking = service.search("water tomatoes")
    assert ids(ranking)[0] == "garden/tomatoes.md#watering"
    assert ranking.notices == ("by words only yet: good is still loading",)
    gate.set()
    service.embed()
    assert service.search("water tomatoes").notices == ()


def test_a_root_without_vectors_takes_meaning_from_no_question_about_another(tmp_path, models):
    done = embedded(tmp_path)
    more = write_notes(tmp_path / "more", {f"{n}.md": f"# Note {n}\n\nText {n}.\n" for n in range(20)})
    roots = (*done.config.roots, make_root(more, "more"))
    service = Service(replace(done.config, roots=roots))
    service.index()
    everywhere = service.search("secret password expire")
    assert any("by words only yet" in notice for notice in everywhere.notices)
    within = service.search("secret password expire", path="notes:ops")
    assert ids(within)[0].endswith("ops/runbook.md#rotating-keys")
    assert not any("by words only yet" in notice for notice in within.notices)


def test_an_unknown_provider_is_refused_by_name(tmp_path):
    with pytest.raises(ConfigError, match=r"no provider 'bogus'; there are: local, .*ollama"):
        open_service(write_notes(tmp_path / "notes"), tmp_path / "data", model="x", provider="bogus")


@pytest.mark.proves("R-notices")
def test_a_broken_model_is_named_and_words_still_answer(tmp_path, models):
    def broken():
        raise EmbeddingError("the weights are not what the card says")

    models["good"] = broken
    service = open_service(write_notes(tmp_path / "notes"), tmp_path / "data", model="good")
    service.index()
    ranking = service.search("water tomatoes")
    assert ids(ranking)[0] == "garden/tomatoes.md#watering"
    assert ranking.notices[0].endswith("good cannot be used: the weights are not what the card says")
    with pytest.raises(EmbeddingError, match="the weights are not"):
        service.search("water tomatoes", mode="vector")


@pytest.mark.proves("R-notices")
def test_a_model_that_fails_at_a_question_leaves_it_to_words(tmp_path, models, monkeypatch):
    service = embedded(tmp_path)

    def fail(self, text):
        raise EmbeddingError("the runtime gave no numbers")

    monkeypatch.setattr(MeaningEmbedder, "encode_query", fail)
    ranking = service.search("water tomatoes")
    assert ids(ranking)[0] == "garden/tomatoes.md#watering"
    assert ranking.notices == ("the model failed: the runtime gave no numbers", "found by words only")
    with pytest.raises(EmbeddingError, match="no numbers"):
        service.search("water tomatoes", mode="vector")


@pytest.mark.proves("R-notices")
def test_a_model_with_few_vectors_leaves_the_question_to_the_fast_one(tmp_path, models):
    service = open_service(
        write_notes(tmp_path / "notes"), tmp_path / "data", model="good", instant_model="quick"
    )
    service.index()
    service.embed(instant_only=True)
    ranking = service.search("secret password expire")
    assert ids(ranking)[0] == "ops/runbook.md#rotating-keys"
    assert any("good has 0 of " in notice for notice in ranking.notices)
    assert not any("by words only" in notice for notice in ranking.notices)
    service.embed()
    ranking = service.search("secret password expire")
    assert all("found by meaning alone" in notice for notice in ranking.notices)


def test_a_profile_can_be_chosen_by_name(tmp_path, models):
    service = embedded(tmp_path, instant_model="quick")
    assert ids(service.search("secret password", profile="quick"))[0] == "ops/runbook.md#rotating-keys"
    with pytest.raises(NotFound, match="no profile 'fast'; there are: good, quick"):
        service.search("secret", profile="fast")
    states = {profile.model: profile for profile in service.status().profiles}
    assert states["good"].embedded == states["good"].wanted == states["quick"].embedded > 0


# Threads


def test_many_threads_ask_while_another_indexes(service):
    problems, questions = [], ["water tomatoes", "promote the replica", "认证", "stock bones", "heap"]

    def ask(seed):
        try:
            for turn in range(50):
                answer = service.semantic_search(questions[(seed + turn) % len(questions)], max_tokens=500)
                assert answer.cost == cost(answer.text) <= 500
                service.md_find(questions[turn % len(questions)]) if turn % 10 == 0 else None
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    turn = 0
    while any(thread.is_alive() for thread in threads):
        turn += 1
        file = note_file(service, f"new/{turn % 3}.md")
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"# New {turn}\n\nWater tomatoes {turn} times.\n")
        service.index()
    for thread in threads:
        thread.join()
    assert not problems


def test_an_id_as_path_gives_that_section_whole_whatever_the_question(tmp_path):
    service = open_service(write_notes(tmp_path / "notes"), tmp_path / "data")
    service.index()
    for path in ("garden/tomatoes.md#blight", "garden/tomatoes.md#Blight", "garden/tomatoes.md### Blight"):
        answer = service.semantic_search("zebra crossing", path=path, detail="full", max_tokens=400)
        assert [(hit.id, shape) for hit, shape in answer.shown] == [("garden/tomatoes.md#blight", "full")]
    with pytest.raises(NotFound, match="no section 'blite'; nearest: garden/tomatoes.md#blight"):
        service.semantic_search("leaves", path="garden/tomatoes.md#blite")


def test_an_ambiguous_section_is_answered_with_the_candidates(tmp_path):
    notes = {"a.md": "# A\n\n## One\n\n### Setup\n\nx\n\n## Two\n\n### Setup\n\ny\n"}
    service = open_service(write_notes(tmp_path / "notes", notes), tmp_path / "data")
    service.index()
    with pytest.raises(QueryError, match="a.md#one/setup, a.md#two/setup"):
        service.search("x", path="a.md#setup")
    assert [hit.id for hit in service.search("x", path="a.md#two/setup").hits] == ["a.md#two/setup"]


def test_model_none_means_words_only(tmp_path):
    service = open_service(
        write_notes(tmp_path / "notes"), tmp_path / "data", instant_model="minilm-static-256"
    )
    service.index()
    service.embed()
    assert service.status().profiles == ()
