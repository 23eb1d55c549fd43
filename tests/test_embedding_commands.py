import json
import os
import signal
import subprocess
import sys
import textwrap

import pytest
from click.testing import CliRunner

from searchsvc.cli import main
from searchsvc.embedding.base import Partial
from searchsvc.errors import EmbeddingError
from tests.index.index_world import HashEmbedder
from tests.notes import write_notes

MINILM, STATIC = "all-minilm-l6-v2-int8", "minilm-static-256"
TEXTS = 14


class Model(HashEmbedder):
    """Refuses texts with a word, is interrupted at one, or is out of reach from one on."""

    refused = interrupting = breaking = "\x00"

    def encode_passages(self, passages):
        for passage in passages:
            if self.interrupting in passage.text:
                raise KeyboardInterrupt
            if self.breaking in passage.text:
                raise EmbeddingError("the server is off; start it")
            (vector,) = super().encode_passages([passage])
            yield Partial(vector[:0], "too spicy") if self.refused in passage.text else vector


@pytest.fixture
def model(monkeypatch, run):
    found = Model()
    monkeypatch.setattr("searchsvc.models.load", lambda choice: found)
    monkeypatch.setattr("searchsvc.models.load_card", lambda name: None)
    monkeypatch.setenv("SEARCHSVC_MODEL", "hash")
    return found


@pytest.fixture
def run(tmp_path, monkeypatch):
    (tmp_path / "empty.yaml").touch()
    monkeypatch.setenv("SEARCHSVC_CONFIG", str(tmp_path / "empty.yaml"))
    monkeypatch.setenv("SEARCHSVC_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("SEARCHSVC_INSTANT_MODEL", "none")
    write_notes(tmp_path / "notes")
    monkeypatch.chdir(tmp_path / "notes")

    def invoke(*arguments, code=0):
        result = CliRunner().invoke(main, arguments)
        assert result.exit_code == code, result.output
        assert "Traceback" not in result.output
        return result

    return invoke


def report(result):
    return json.loads(result.stdout)


# The real models


def test_two_models_side_by_side_from_the_first_text_to_the_last_drop(run):
    assert f"{MINILM}: 14 texts embedded" in run("embed").output
    assert "12 left" in run("embed", "--model", STATIC, "--limit", "2", code=4).output
    lines = run("profiles").output.splitlines()
    assert [line.strip("* ").split("  ")[0] for line in lines] == [MINILM, STATIC]
    assert f"* {MINILM}  14 of 14 sections, 384 dimensions" in lines[0]
    assert f"  {STATIC}  2 of 14 sections, 256 dimensions" in lines[1]
    assert "not complete: root notes has vectors for 2 of 14" in run("profiles", "use", STATIC, code=2).output
    assert "complete" in run("embed", "--model", STATIC).output
    rows = json.loads(run("profiles", "--json").output)
    assert {row["name"]: row["in_use"] for row in rows} == {MINILM: False, STATIC: True}
    assert f"searches go by {MINILM}-" in run("profiles", "use", MINILM).output
    assert f"* {MINILM}" in run("profiles").output
    assert "MB freed" in run("profiles", "drop", STATIC).output
    assert STATIC not in run("profiles").output
    assert "is in use" in run("profiles", "drop", MINILM, code=2).output
    assert "MB freed" in run("profiles", "drop", MINILM, "--force").output
    assert "no vectors yet: run `searchsvc index`" in run("profiles").output


def test_vectors_made_by_one_command_are_taken_by_another(run, tmp_path, monkeypatch):
    run("embed", "--model", STATIC)
    done = run("vectors", "export", str(tmp_path / "v.npz")).output
    assert "v.npz: 14 texts, 13 vectors of minilm-static-256-" in done
    assert "exists; choose another name" in run("vectors", "export", str(tmp_path / "v.npz"), code=2).output
    assert report(run("vectors", "export", str(tmp_path / "v.npz"), "--force", "--json"))["texts"] == 14
    monkeypatch.setenv("SEARCHSVC_DATA_DIR", str(tmp_path / "elsewhere"))
    done = run("vectors", "import", str(tmp_path / "v.npz")).output
    assert "14 texts have vectors now; 0 had them, 0 of the file match no text here, 0 texts here" in done
    run(*done.splitlines()[1].partition("searchsvc ")[2].split())
    best = json.loads(run("search", "credentials renewed", "--mode", "vector", "--json").output)["hits"][0]
    assert best["section"]["slug"] == "rotating-keys"
    assert "complete" in run("embed", "--model", STATIC).output


def test_an_import_that_leaves_texts_without_vectors_says_how_to_go_on(run, tmp_path, monkeypatch):
    run("embed", "--model", STATIC)
    run("vectors", "export", str(tmp_path / "v.npz"))
    (tmp_path / "notes" / "new.md").write_text("# New\n\na text\n")
    monkeypatch.setenv("SEARCHSVC_DATA_DIR", str(tmp_path / "elsewhere"))
    done = run("vectors", "import", str(tmp_path / "v.npz")).output
    assert "1 texts here still lack vectors" in done
    assert "run `searchsvc embed` with that model for the rest" in done
    assert report(run("vectors", "import", str(tmp_path / "v.npz"), "--json"))["missing"] == 1


def test_a_file_that_is_no_export_is_one_line_and_exit_code_1(run, tmp_path):
    (tmp_path / "v.npz").write_bytes(b"PK no archive")
    result = run("vectors", "import", str(tmp_path / "v.npz"), code=1)
    assert result.stderr.startswith("error: v.npz is not an export of vectors, or is damaged")
    assert len(result.stderr.splitlines()) == 1


# Exit codes


def test_a_complete_job_ends_with_0_and_says_so(run, model):
    assert "hash: 14 texts embedded" in run("embed").output
    again = report(run("embed", "--json"))
    assert (again["state"], again["embedded"], again["wanted"], again["left"]) == ("complete", 0, TEXTS, 0)
    assert run("embed").output == "hash: 0 texts embedded; complete\n"


def test_a_limit_ends_the_job_with_4_and_the_next_run_goes_on(run, model):
    done = report(run("embed", "--limit", "5", "--json", code=4))
    assert (done["embedded"], done["left"], done["state"]) == (5, TEXTS - 5, "partial")
    assert report(run("embed", "--json"))["embedded"] == TEXTS - 5
    texts = [(passage.context, passage.text) for passage in model.seen if passage.text and passage.context]
    assert len(set(texts)) == len(texts)


def test_a_limit_that_is_just_enough_is_complete(run, model):
    assert report(run("embed", "--limit", str(TEXTS), "--json"))["state"] == "complete"


def test_failures_end_the_job_with_4_are_listed_and_can_be_tried_again(run, model):
    model.refused = "Simmer"
    assert "1 failed (see `searchsvc embed --failures`)" in run("embed", code=4).output
    listed = run("embed", "--failures").output
    assert listed == "hash: kitchen/soup.md#stock: too spicy\n1 failures; try again with --retry-failed\n"
    (row,) = report(run("embed", "--failures", "--json"))
    assert (row["id"], row["reason"], row["embedded"]) == ("kitchen/soup.md#stock", "too spicy", False)
    seen = len(model.seen)
    run("embed", code=4)
    assert len(model.seen) == seen
    run("embed", "--retry-failed", code=4)
    model.refused = "\x00"
    assert report(run("embed", "--retry-failed", "--json"))["embedded"] == 1
    assert run("embed", "--failures", code=3).output == "0 failures\n"


def test_a_model_that_cannot_be_asked_ends_the_job_with_1_and_keeps_what_was_done(run, model):
    model.breaking = "Simmer"
    result = run("embed", code=1)
    assert result.stderr.splitlines()[-1] == "error: the server is off; start it"
    assert "Traceback" not in result.output
    model.breaking = "\x00"
    assert 0 < report(run("embed", "--json"))["embedded"] <= TEXTS


def test_an_interruption_ends_the_job_with_130_and_keeps_what_was_done(run, model, tmp_path):
    model.interrupting = "Simmer"
    assert "run the command again to go on" in run("embed", code=130).output
    model.interrupting = "\x00"
    assert 0 < report(run("embed", "--json"))["embedded"] < TEXTS


def test_without_a_model_there_is_nothing_to_do(run, monkeypatch):
    monkeypatch.setenv("SEARCHSVC_MODEL", "none")
    assert run("embed").output == "no model: search is by words\n"
    assert run("embed", "--dry-run").output == "no model: nothing to embed\n"
    assert run("embed", "--dry-run", "--json").output == "null\n"


@pytest.mark.parametrize(
    "wrong",
    [["--limit", "0"], ["--max-rate", "0"], ["--max-rate", "-1"], ["--nice", "0"], ["--nice", "20"]],
)
def test_numbers_out_of_range_are_wrong_usage(run, wrong):
    run("embed", *wrong, code=2)


def test_a_dry_run_embeds_nothing_and_tells_texts_tokens_cost_and_time(run, model, monkeypatch):
    output = run("embed", "--dry-run").output
    assert output.startswith("hash (local): 14 texts, about ")
    assert "cost: nothing\ntime: unknown before a first run; try --limit 200" in output
    assert model.seen == []
    assert report(run("embed", "--dry-run", "--json"))["texts"] == TEXTS
    monkeypatch.setenv("SEARCHSVC_PROVIDER", "openai")
    assert "cost: unknown; put `prices: {hash: …}`" in run("embed", "--dry-run").output
    monkeypatch.setenv("SEARCHSVC_PRICES", "hash=1000000")
    assert "cost: about $" in run("embed", "--dry-run").output
    run("profiles")


def test_a_rate_spaces_the_texts_out(run, model, monkeypatch):
    now, waited = [0.0], []

    def wait(self, seconds):
        waited.append(seconds)
        now[0] += seconds

    clock = type("Clock", (), {"monotonic": staticmethod(lambda: now[0])})
    monkeypatch.setattr("searchsvc.batch.time", clock)
    event = type("Event", (), {"wait": wait})
    monkeypatch.setattr("searchsvc.batch.threading", type("Threading", (), {"Event": event}))
    assert report(run("embed", "--max-rate", "2", "--json"))["embedded"] == TEXTS
    assert sum(waited) == pytest.approx((TEXTS - 1) / 2)


def test_nice_gives_way_to_other_programs(run, model, monkeypatch):
    given = []
    monkeypatch.setattr("searchsvc.priority.os.nice", given.append)
    run("embed", "--nice", "7")
    assert given == [7]


def test_index_with_a_model_out_of_reach_keeps_words_and_ends_with_4(run, model):
    model.breaking = "Simmer"
    result = run("index", ".", code=4)
    assert "words are indexed, vectors are not complete: the server is off" in result.stderr
    assert report(run("index", ".", "--json", code=4))["problem"] == "the server is off; start it"
    assert "garden/tomatoes.md" in run("search", "water tomatoes", "--no-refresh").output


def test_index_embeds_unless_told_not_to(run, model):
    run("index", ".", "--no-embed")
    assert model.seen == []
    run("index", ".", "--instant")
    assert model.seen == []
    assert "hash: 14 texts embedded" in run("index", ".").output


# A provider that somebody installed

PROVIDER = '''
import numpy as np
from searchsvc.embedding import Partial, Profile

class Letters:
    """Knows a text by its letters."""

    def __init__(self, choice):
        size = choice.dimensions or 26
        self.profile = Profile(choice.model, "letters", "1", size, max_tokens=1000)

    def encode_query(self, text):
        counts = np.zeros(self.profile.dimension, np.float32)
        for sign in text.lower():
            if "a" <= sign <= "z":
                counts[(ord(sign) - 97) % len(counts)] += 1
        return counts / max(np.linalg.norm(counts), 1e-12)

    def encode_passages(self, passages):
        for passage in passages:
            row = self.encode_query(passage.context + passage.text)[None, :]
            if "Roast" in passage.text and self.profile.name == "picky":
                yield Partial(row[:0], "no roast")
            else:
                yield row if row.any() else row[:0]
'''


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Put a package with a provider on the path, as pip would."""
    site = tmp_path / "site"
    (site / "letters-1.0.dist-info").mkdir(parents=True)
    (site / "letters_provider.py").write_text(PROVIDER)
    (site / "letters-1.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: letters\nVersion: 1.0\n"
    )
    (site / "letters-1.0.dist-info" / "entry_points.txt").write_text(
        "[searchsvc.providers]\nletters = letters_provider:Letters\nbroken = letters_provider:Missing\n"
    )
    monkeypatch.syspath_prepend(str(site))
    yield site
    sys.modules.pop("letters_provider", None)


@pytest.mark.proves("R-provider")
def test_an_installed_provider_embeds_answers_and_is_used_again_without_being_named(run, installed):
    chosen = ("--provider", "letters", "--model", "abc")
    assert "abc (letters): 14 texts" in run("embed", *chosen, "--dry-run").output
    assert report(run("embed", *chosen, "--json"))["embedded"] == TEXTS
    (row,) = json.loads(run("profiles", "--json").output)
    assert (row["name"], row["provider"], row["dimension"], row["in_use"]) == ("abc", "letters", 26, True)
    # Letters find something for everything, and nothing that they are sure of.
    asked = ("search", "ninety days", "--mode", "vector", "--json", "--top", "20")
    found = json.loads(run(*asked, code=3).output)
    assert len(found["hits"]) >= 10
    assert "model abc (letters): loaded in" in run("doctor").output


def test_an_installed_provider_with_other_settings_has_a_profile_of_its_own(run, installed):
    run("embed", "--provider", "letters", "--model", "abc")
    run("embed", "--provider", "letters", "--model", "abc", "--dimensions", "13")
    rows = json.loads(run("profiles", "--json").output)
    assert sorted((row["dimension"], row["in_use"]) for row in rows) == [(13, True), (26, False)]


def test_what_an_installed_provider_refuses_is_listed(run, installed):
    done = report(run("embed", "--provider", "letters", "--model", "picky", "--json", code=4))
    assert (done["embedded"], done["failed"], done["left"]) == (TEXTS - 1, 1, 0)
    assert "picky: kitchen/soup.md#tomato-soup: no roast" in run("embed", "--failures").output


def test_its_vectors_travel_like_any_other_s(run, installed, tmp_path, monkeypatch):
    run("embed", "--provider", "letters", "--model", "abc")
    run("vectors", "export", str(tmp_path / "v.npz"))
    monkeypatch.setenv("SEARCHSVC_DATA_DIR", str(tmp_path / "elsewhere"))
    assert report(run("vectors", "import", str(tmp_path / "v.npz"), "--json"))["added"] == TEXTS


def test_a_provider_that_is_not_installed_or_broken_is_named(run, installed):
    result = run("embed", "--provider", "digits", "--model", "abc", code=2)
    assert "no provider 'digits'; there are: local, " in result.stderr
    assert "letters" in result.stderr
    result = run("embed", "--provider", "broken", "--model", "abc", code=1)
    assert "cannot be loaded (AttributeError); see the log" in result.stderr


# In a process of its own


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_ctrl_c_in_a_real_process_ends_with_130_and_nothing_is_embedded_twice(run, tmp_path):
    log = tmp_path / "texts"
    program = f"""
        import os, signal, sys
        from tests.test_embedding_commands import Model, main
        import searchsvc.models

        class Slow(Model):
            def encode_passages(self, passages):
                for number, passage in enumerate(passages):
                    with open({str(log)!r}, "a") as file:
                        file.write(repr((passage.context, passage.text)) + "\\n")
                    if number == 20 and "stop" in sys.argv:
                        os.kill(os.getpid(), signal.SIGINT)
                    yield from super().encode_passages([passage])

        searchsvc.models.load = lambda choice: Slow()
        searchsvc.models.load_card = lambda name: None
        main(["embed", "--json"])
    """
    environment = os.environ | {"SEARCHSVC_MODEL": "hash", "PYTHONPATH": os.pathsep.join(sys.path)}

    def start(*arguments):
        return subprocess.run(
            [sys.executable, "-c", textwrap.dedent(program), *arguments],
            capture_output=True, text=True, env=environment, stdin=subprocess.DEVNULL,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )  # fmt: skip

    stopped = start("stop")
    assert stopped.returncode == 130, stopped.stderr
    assert stopped.stderr.splitlines()[-1].startswith("interrupted; what was committed is kept")
    done = start()
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["state"] == "complete"
    assert 0 < json.loads(done.stdout)["embedded"] < TEXTS


def test_status_and_profiles_tell_the_same(run, model):
    run("embed", "--limit", "5", code=4)
    (row,) = json.loads(run("profiles", "--json").output)
    (state,) = json.loads(run("status", "--json").output)["profiles"]
    assert (row["embedded"], row["wanted"]) == (state["embedded"], state["wanted"]) == (5, TEXTS)
