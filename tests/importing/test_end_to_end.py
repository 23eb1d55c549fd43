"""From files on disk to answers with page numbers, as somebody at a terminal does it."""

import json

import pytest
from click.testing import CliRunner

from searchsvc.cli import main

pytest.importorskip("pypdfium2", reason="the extra pdf is not installed")
pytest.importorskip("markdownify", reason="the extra epub is not installed")
pytest.importorskip("reportlab", reason="PDFs are made with reportlab")

import epub_world
import pdf_world


@pytest.fixture
def run(tmp_path):
    def call(*arguments):
        settings = {"SEARCHSVC_MODEL": "none", "SEARCHSVC_CONFIG": ""}
        words = ["--data-dir", str(tmp_path / "data"), *map(str, arguments)]
        return CliRunner().invoke(main, words, env=settings)

    return call


@pytest.fixture
def papers(tmp_path):
    folder = tmp_path / "papers"
    folder.mkdir()
    (folder / "book.pdf").write_bytes(pdf_world.book(3).data)
    (folder / "cut.pdf").write_bytes(pdf_world.book(3).data[:3000])
    bodies = {"a.xhtml": "<h1>Herons</h1><p>Herons stand still in the reeds.</p>"}
    (folder / "birds.epub").write_bytes(epub_world.pack(epub_world.members(bodies)))
    return folder


def test_what_can_be_imported_is_and_what_cannot_is_named(run, papers, tmp_path):
    first = run("import", papers, "--json")
    report = json.loads(first.stdout)
    assert first.exit_code == 4
    assert (report["imported"], report["failed"]) == (2, 1)
    (failed,) = [row for row in report["documents"] if row["state"] == "failed"]
    assert failed["path"].endswith("cut.pdf")
    assert "cut off" in failed["reason"]
    again = json.loads(run("import", papers, "--json").stdout)
    assert (again["imported"], again["unchanged"]) == (0, 2)


def test_what_was_imported_is_found_with_its_pages(run, papers, tmp_path):
    into = tmp_path / "library"
    assert run("import", papers / "book.pdf", papers / "birds.epub", "--into", into).exit_code == 0
    word = pdf_world.book(3).headings[-1][1]
    found = json.loads(run("search", word, "--root", into, "--json").stdout)
    assert found["hits"][0]["section"]["pages"]
    birds = json.loads(run("search", "where do herons stand", "--root", into, "--json").stdout)
    assert birds["hits"][0]["path"].startswith("birds-")
    assert birds["hits"][0]["section"]["pages"] is None


def test_nothing_that_can_be_imported_is_an_error(run, papers):
    alone = run("import", papers / "cut.pdf")
    assert alone.exit_code == 1
    assert run("import", papers / "nowhere.pdf").exit_code in (1, 2)
