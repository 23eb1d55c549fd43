"""Importing over the protocol: what becomes of files, and what may not be read."""

import json
import re

import anyio
import pytest
from mcp.client import Client

pytest.importorskip("pypdfium2", reason="the extra pdf is not installed")
pytest.importorskip("markdownify", reason="the extra epub is not installed")
pytest.importorskip("reportlab", reason="PDFs are made with reportlab")

from tests.serving.reader_client import HERONS, configure, epub, pdf, serve, text_of, until

pytestmark = pytest.mark.anyio


async def add(client, path, **arguments):
    """Import, and wait until it can be searched: another thread may be writing the index."""
    result = await client.call_tool("reader.import_document", {"path": path, **arguments})
    assert not result.is_error, text_of(result)
    (facts,) = result.structured_content["rows"]
    await until(
        lambda: ask(client, "open_document", doc_id=facts["doc_id"]), lambda opened: not opened.is_error
    )
    return facts, text_of(result)


async def ask(client, tool, **arguments):
    return await client.call_tool(f"reader.{tool}", arguments)


async def rows(client, tool, **arguments):
    result = await ask(client, tool, **arguments)
    assert not result.is_error, text_of(result)
    return result.structured_content["rows"]


async def test_a_pdf_is_imported_and_found_at_once_with_its_pages(client):
    facts, said = await add(client, "papers/marsh.pdf")
    assert said.startswith(f"imported: {facts['doc_id']}")
    assert facts["state"] == "imported"
    (listed,) = await rows(client, "list_documents", file_types=["pdf"])
    expected = {
        "title": "Marsh birds",
        "author": "Ada",
        "file_type": "pdf",
        "pages": 2,
        "doc_id": facts["doc_id"],
    }
    assert expected.items() <= listed.items()
    (found,) = await rows(client, "search_markdown", query="booms at night")
    assert found["pages"] == [2, 2]
    outline = await rows(client, "get_markdown_outline", doc_id=facts["doc_id"])
    assert "herons" in str(outline)
    opened = await ask(client, "open_document", path="papers/marsh.pdf")
    assert HERONS.split(" and ")[0] in text_of(opened)


async def test_an_epub_and_a_note_are_imported(client, tmp_path):
    facts, said = await add(client, "papers/owls.epub")
    assert "second copy" not in said
    assert facts.items() >= {"title": "Owls", "author": "Bea", "language": "en", "file_type": "epub"}.items()
    (tmp_path / "notes/papers/loose.md").write_text("# Loose\n\nleaves\n", encoding="utf-8")
    note, said = await add(client, "papers/loose.md")
    assert "! the same text is served as papers/loose.md" in said
    assert note["file_type"] == "markdown"
    assert note["doc_id"] != "papers/loose.md"
    found = await rows(client, "search_markdown", query="hunt at night")
    assert found[0]["id"].startswith(facts["doc_id"])


@pytest.mark.proves("R-import")
async def test_what_has_not_changed_is_left_and_ids_of_sections_stay(client):
    facts, _ = await add(client, "papers/owls.epub")
    sections = [row["id"] for row in await rows(client, "get_markdown_outline", doc_id=facts["doc_id"])]
    again, said = await add(client, "papers/owls.epub")
    assert again["state"] == "unchanged"
    assert again["imported"] == facts["imported"]
    forced, _ = await add(client, "papers/owls.epub", force_reimport=True)
    assert forced["state"] == "imported"
    assert forced["doc_id"] == facts["doc_id"]
    assert [
        row["id"] for row in await rows(client, "get_markdown_outline", doc_id=facts["doc_id"])
    ] == sections
    assert len(sections) >= 2
    assert len(await rows(client, "list_documents", file_types=["epub"])) == 1


async def test_a_changed_file_is_imported_again_and_the_old_text_gone(client, tmp_path):
    facts, _ = await add(client, "papers/owls.epub")
    (tmp_path / "notes/papers/owls.epub").write_bytes(epub("Owls sleep by day."))
    again, _ = await add(client, "papers/owls.epub")
    assert (again["state"], again["doc_id"]) == ("imported", facts["doc_id"])
    assert await rows(client, "search_markdown", query="sleep by day")
    assert not await rows(client, "search_markdown", query="hunt at night")


async def test_title_author_and_language_are_said_and_kept(client):
    said = {"title": "My owls", "author": "Me", "language": "de"}
    facts, _ = await add(client, "papers/owls.epub", **said)
    assert facts.items() >= said.items()
    kept, _ = await add(client, "papers/owls.epub", force_reimport=True)
    assert kept.items() >= said.items()
    silent, _ = await add(client, "papers/owls.epub", title="", author="", language="")
    assert silent.items() >= said.items()


async def test_what_is_said_cannot_break_lines_or_front_matter(client):
    facts, said = await add(client, "papers/owls.epub", title='x"\n---\n# y\x1b[31m', author="a: b\n=== 1")
    assert facts["file_type"] == "epub"
    assert len(said.splitlines()) == 1
    assert "\x1b" not in said
    assert "hunt" in text_of(await ask(client, "open_document", doc_id=facts["doc_id"]))


@pytest.mark.proves("R-jail")
@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("papers/none.pdf", "no file at 'papers/none.pdf'"), ("folder.pdf", "no file at 'folder.pdf'"),
        ("papers", "is no document to import; expected .pdf"), ("papers/x.docx", "expected .pdf"),
        ("papers/x", "expected .pdf"), ("../outside/secret.pdf", "outside the root"),
        ("{tmp}/outside/secret.pdf", "is not relative"), ("/etc/x.pdf", "is not relative to a root"),
        ("link.pdf", "outside the root"), ("linked/secret.pdf", "outside the root"),
        (".hidden.pdf", "is hidden"), (".dot/x.pdf", "is hidden"), ("*.pdf", "no file"),
        ("papers/*.pdf", "no file"), ("nul\0.pdf", "path"), ("x" * 4900 + ".pdf", "path"),
        ("~/x.pdf", "is not written out"), ("papers/damaged.pdf", "damaged.pdf is not imported"),
        ("text.pdf", "text.pdf is not imported"), ("empty.epub", "empty.epub is not imported"),
    ],
)  # fmt: skip
async def test_what_cannot_or_may_not_be_imported_is_refused(client, tmp_path, path, said):
    notes = tmp_path / "notes"
    (notes / "folder.pdf").mkdir()
    (notes / ".dot").mkdir()
    for hidden in (".hidden.pdf", ".dot/x.pdf"):
        (notes / hidden).write_bytes(pdf())
    (notes / "link.pdf").symlink_to(tmp_path / "outside/secret.pdf")
    (notes / "linked").symlink_to(tmp_path / "outside")
    (notes / "text.pdf").write_text("no pdf", encoding="utf-8")
    (notes / "empty.epub").write_bytes(b"")
    result = await ask(client, "import_document", path=path.replace("{tmp}", str(tmp_path)))
    assert result.is_error
    assert said in text_of(result)
    assert len(text_of(result)) < 700
    assert not await rows(client, "list_documents", file_types=["pdf", "epub"])


async def test_what_an_import_has_made_is_not_imported_again(client, tmp_path):
    facts, _ = await add(client, "papers/owls.epub")
    result = await ask(client, "import_document", path=f"{tmp_path}/data/imports/{facts['doc_id']}")
    assert result.is_error
    assert "was made by an import" in text_of(result)


async def test_two_imports_at_once_are_both_there(client, tmp_path):
    for number in range(3):
        (tmp_path / f"notes/papers/{number}.epub").write_bytes(epub(f"Number {number} of many."))
    done = []

    async def one(number):
        done.append(await add(client, f"papers/{number}.epub"))

    async with anyio.create_task_group() as group:
        for number in range(3):
            group.start_soon(one, number)
    assert len({facts["doc_id"] for facts, _ in done}) == 3
    assert len(await rows(client, "search_markdown", query="of many")) == 3


@pytest.mark.proves("R-read-only")
async def test_nothing_is_written_beside_the_sources(client, tmp_path):
    before = {file: file.stat().st_mtime_ns for file in (tmp_path / "notes").rglob("*")}
    await add(client, "papers/marsh.pdf")
    await add(client, "papers/owls.epub", title="Other")
    assert {file: file.stat().st_mtime_ns for file in (tmp_path / "notes").rglob("*")} == before


async def test_imports_are_served_only_with_the_reader(tmp_path):
    config = configure(tmp_path)
    async with Client(serve(config, "")) as client:
        assert "imports" not in text_of(await client.call_tool("status", {}))
    assert not (tmp_path / "data/imports").exists()


async def test_an_import_is_found_by_meaning_once_vectors_are_made(tmp_path):
    config = configure(tmp_path, model="minilm-static-256", rescan_seconds=0.5)
    async with Client(serve(config)) as client:
        facts, _ = await add(client, "papers/marsh.pdf")

        def is_there(result):
            return not result.is_error and any(
                hit["path"] == facts["doc_id"] for hit in result.structured_content["hits"]
            )

        question = {"query": "a bird that waits motionless for its prey", "top_k": 3, "file_types": ["pdf"]}
        found = await until(lambda: ask(client, "semantic_search_documents", **question), is_there)
        best = found.structured_content["hits"][0]
        assert best["pages"] == [1, 1]
        assert re.search(r"score -?0\.\d{3}", text_of(found))
        assert json.dumps(best["score"])
        only = await ask(
            client, "semantic_search_documents", **question | {"min_score": best["score"] - 0.001}
        )
        assert {hit["id"] for hit in only.structured_content["hits"]} == {best["id"]}
        wrong = await ask(client, "semantic_search_documents", query_vector=[1.0] * 3)
        assert "query_vector has 3 numbers" in text_of(wrong)
        assert "has 256 dimensions" in text_of(wrong)
