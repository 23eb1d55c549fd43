import json
import sqlite3

import pytest
from click.testing import CliRunner
from filelock import FileLock

from searchsvc.cli import main
from searchsvc.config import Config, make_root
from searchsvc.doctor import examine
from searchsvc.embedding.base import Partial
from searchsvc.embedding.cards import data_folder
from searchsvc.errors import EmbeddingError
from searchsvc.service import Service
from tests.index.index_world import HashEmbedder
from tests.notes import write_notes

STATIC = "minilm-static-256"
SECRET = "sk-very-secret-123"


@pytest.fixture
def config(tmp_path):
    root = make_root(write_notes(tmp_path / "notes"), "notes")
    return Config(roots=(root,), data_dir=tmp_path / "data", model=STATIC, instant_model="none")


@pytest.fixture
def ready(config):
    """Settings with a complete index."""
    service = Service(config)
    service.index()
    service.embed()
    return config


@pytest.fixture
def run(tmp_path, monkeypatch):
    (tmp_path / "empty.yaml").touch()
    for name, value in {
        "CONFIG": tmp_path / "empty.yaml",
        "DATA_DIR": tmp_path / "data",
        "MODEL": STATIC,
        "INSTANT_MODEL": "none",
    }.items():
        monkeypatch.setenv(f"SEARCHSVC_{name}", str(value))
    write_notes(tmp_path / "notes")
    monkeypatch.chdir(tmp_path / "notes")
    return lambda *arguments: CliRunner().invoke(main, arguments)


def found(config, *names):
    """Return state, what was found and the fix of the one check whose name begins so."""
    checks = [check for check in examine(config) if check.name.startswith(names)]
    assert len(checks) == 1, checks
    return checks[0].state, checks[0].found, checks[0].fix


def files(folder):
    return {
        path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and "-shm" not in path.name
    }


def test_a_sound_set_up_is_sound_in_every_check(ready):
    checks = list(examine(ready))
    assert [check.state for check in checks] == ["ok"] * len(checks)
    assert [check.name.split()[0] for check in checks] == ["data", "root", "index", "model", "vectors"]
    assert not any(check.fix for check in checks)


@pytest.mark.proves("R-doctor")
def test_a_check_up_changes_nothing(ready):
    row = next(ready.data_dir.glob("*/vectors/*/*/rows.npy"))
    row.write_bytes(row.read_bytes()[:200])
    before = files(ready.data_dir)
    list(examine(ready))
    assert files(ready.data_dir) == before


def test_every_fault_says_its_fix(config, monkeypatch):
    def fail(choice):
        raise EmbeddingError("cannot reach the server; start it")

    monkeypatch.setattr("searchsvc.models.load", fail)
    for check in examine(config):
        assert check.state == "ok" or check.fix


def test_without_an_index_the_way_to_one_is_said(config):
    assert found(config, "index") == ("warning", "not made yet", "run `searchsvc index`, or just search")


@pytest.mark.parametrize("name", ["sections", "rows", "keys"])
@pytest.mark.parametrize("change", ["cut", "gone"])
def test_a_damaged_or_missing_file_is_found_and_what_is_advised_repairs_it(ready, name, change):
    file = next(ready.data_dir.rglob(f"{name}.npy"))
    file.unlink() if change == "gone" else file.write_bytes(file.read_bytes()[:150])
    state, text, fix = found(ready, "index")
    assert state == "fault"
    assert f"{name}.npy is missing or damaged" in text
    assert "`searchsvc index`" in fix
    assert found(ready, "model")[0] == "ok"
    service = Service(ready)
    service.index()
    service.embed()
    assert {check.state for check in examine(ready)} == {"ok"}


@pytest.mark.parametrize("content", [b"", b"no database at all, but long enough for a header" * 40])
def test_a_catalog_that_is_none_is_found(ready, content):
    (file,) = ready.data_dir.glob("*/catalog.sqlite")
    for beside in file.parent.glob("catalog.sqlite-*"):
        beside.unlink()
    file.write_bytes(content)
    assert found(ready, "index")[0] == "fault"


def test_a_catalog_with_a_bad_page_is_found(ready):
    (file,) = ready.data_dir.glob("*/catalog.sqlite")
    with sqlite3.connect(file) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (page,) = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'sections_by_note'"
        ).fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    connection.close()
    data = bytearray(file.read_bytes())
    data[(page - 1) * size : page * size] = b"\x5a" * size
    file.write_bytes(data)
    assert found(ready, "index")[0] == "fault"


def test_settings_in_the_catalog_that_cannot_be_read_are_a_fault_and_no_traceback(ready):
    (file,) = ready.data_dir.glob("*/catalog.sqlite")
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE meta SET value = '{' WHERE key LIKE 'calibration %'")
    connection.close()
    assert found(ready, "index")[0] == "fault"


def test_an_index_that_another_process_writes_is_no_fault(ready):
    (folder,) = ready.data_dir.iterdir()
    with FileLock(folder / "writer.lock"):
        assert found(ready, "index")[0] == "ok"


def test_a_root_without_notes_is_a_fault_and_an_unreadable_note_a_warning(ready, tmp_path):
    (tmp_path / "notes" / "bad.md").write_bytes(b"\x00\x01" * 500)
    service = Service(ready)
    service.index()
    warned = [check for check in examine(ready) if check.state == "warning"]
    assert [check.found.partition(":")[0] for check in warned] == [
        "1 files could not be read, the first bad.md"
    ]
    for path in (tmp_path / "notes").rglob("*.md"):
        path.unlink()
    state, text, fix = found(ready, "root")
    assert (state, text) == ("fault", "no Markdown files (.md, .markdown, .mdx, .qmd)")
    assert "check the path" in fix


def test_a_data_folder_that_cannot_be_written_is_a_fault(config, tmp_path):
    from dataclasses import replace

    (tmp_path / "file").touch()
    state, text, fix = found(replace(config, data_dir=tmp_path / "file"), "data folder")
    assert (state, text) == ("fault", "cannot be written: Not a directory")
    assert "--data-dir" in fix


def test_little_space_is_a_warning(config, monkeypatch):
    usage = type("Usage", (), {"free": 1_000_000})
    monkeypatch.setattr("searchsvc.doctor.shutil.disk_usage", lambda folder: usage)
    assert found(config, "data folder")[:2] == ("warning", "1 MB free")


def test_damaged_model_files_are_found(config, monkeypatch, tmp_path):
    import shutil

    folder = tmp_path / "model"
    shutil.copytree(data_folder() / STATIC, folder)
    weights = max(folder.iterdir(), key=lambda path: path.stat().st_size)
    weights.write_bytes(weights.read_bytes()[:-1] + b"x")
    from dataclasses import replace

    state, text, fix = found(replace(config, model_path=folder), "model")
    assert state == "fault"
    assert "has SHA-256" in text
    assert fix


def test_words_only_is_a_warning(config):
    from dataclasses import replace

    assert found(replace(config, model="none"), "model")[:2] == ("warning", "none: search is by words only")


def test_a_model_that_breaks_at_a_text_is_a_fault_and_what_it_says_is_not_shown(config, monkeypatch):
    class Broken(HashEmbedder):
        turns = 0

        def encode_query(self, text):
            self.turns += 1
            if self.turns > 1:
                raise RuntimeError(f"401 for {SECRET}")
            return super().encode_query(text)

    monkeypatch.setattr("searchsvc.models.load", lambda choice: Broken())
    state, text, _ = found(config, "model")
    assert (state, text) == ("fault", "RuntimeError at the first text")


def test_failed_and_missing_vectors_are_told(config, monkeypatch, tmp_path):
    class Picky(HashEmbedder):
        def encode_passages(self, passages):
            for passage in passages:
                (vector,) = super().encode_passages([passage])
                yield Partial(vector[:0], "no soup") if "Roast" in passage.text else vector

    embedder = Picky()
    monkeypatch.setattr("searchsvc.models.load", lambda choice: embedder)
    service = Service(config)
    service.index()
    service.embed()
    state, text, fix = found(config, "vectors")
    assert (state, text) == ("warning", "1 texts failed")
    assert "embed --failures" in fix
    embedder.encode_passages = lambda passages: HashEmbedder.encode_passages(embedder, passages)
    from searchsvc.batch import Limits

    service.embed(limits=Limits(retry_failed=True))
    (tmp_path / "notes" / "new.md").write_text("# New\n\na text\n")
    service.index()
    assert found(config, "vectors") == (
        "warning", "14 of 15 sections", "run `searchsvc embed`, or leave it to `serve`",
    )  # fmt: skip


# The command


def test_the_command_prints_checks_and_fixes_and_ends_with_1_only_for_a_fault(run, tmp_path):
    result = run("doctor")
    assert result.exit_code == 0
    assert "warning index of notes: not made yet" in result.output
    assert "          -> run `searchsvc index`" in result.output
    (tmp_path / "bare").mkdir()
    result = run("doctor", "--root", str(tmp_path / "bare"))
    assert result.exit_code == 1
    assert "FAULT   root bare" in result.output


def test_the_command_prints_json(run):
    checks = json.loads(run("doctor", "--json").output)
    assert {tuple(check) for check in checks} == {("name", "state", "found", "fix")}
    assert [check["state"] for check in checks if check["name"].startswith("model")] == ["ok"]


def test_with_a_damaged_index_every_other_check_is_still_printed(run, tmp_path):
    run("index", ".")
    next((tmp_path / "data").rglob("sections.npy")).unlink()
    result = run("doctor", "--json")
    assert result.exit_code == 1
    states = {check["name"].split()[0]: check["state"] for check in json.loads(result.output)}
    assert states == {"data": "ok", "root": "ok", "index": "fault", "model": "ok"}


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("MODEL", "nomodel", "no model named 'nomodel'"),
        ("RESCAN_SECONDS", "soon", "rescan_seconds"),
        ("CONFIG", "/missing.yaml", "no config file"),
    ],
)
def test_a_wrong_setting_is_a_fault_with_its_name(run, monkeypatch, name, value, said):
    monkeypatch.setenv(f"SEARCHSVC_{name}", value)
    result = run("doctor", "--json")
    assert result.exit_code == 1
    (fault,) = [check for check in json.loads(result.output) if check["state"] == "fault"]
    assert fault["name"] == "settings"
    assert said in fault["found"]


@pytest.mark.proves("R-doctor")
def test_no_secret_is_shown_whatever_is_wrong(run, monkeypatch, tmp_path):
    (tmp_path / "key").write_text(SECRET)
    monkeypatch.setenv("SEARCHSVC_API_KEY", SECRET)
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("SEARCHSVC_API_KEY_FILE", str(tmp_path / "key"))
    monkeypatch.setenv("SEARCHSVC_PROVIDER", "openai")
    monkeypatch.setenv("SEARCHSVC_MODEL", "m")
    for url in (
        "http://127.0.0.1:9/v1",
        f"http://me:{SECRET}@127.0.0.1:9",
        f"http://127.0.0.1:9/?key={SECRET}",
    ):
        monkeypatch.setenv("SEARCHSVC_BASE_URL", url)
        for arguments in (["doctor"], ["doctor", "--json"]):
            result = run(*arguments)
            assert result.exit_code == 1
            assert SECRET not in result.output
