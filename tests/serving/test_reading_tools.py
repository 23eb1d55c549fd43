"""The reading tools and the graph over the protocol, in both eras; and the schemas as agents see them."""

import base64
import io
import json
from pathlib import Path

import pytest
from mcp.client import Client
from PIL import Image

from searchsvc.config import Config, make_root
from searchsvc.serving.page import tools_page
from searchsvc.serving.server import make_server
from tests.notes import write_notes

HERE = Path(__file__).parent
SNAPSHOT = HERE / "tools.json"
"""Made anew by ``python -m tests.serving.test_reading_tools`` when a schema changes on purpose."""

pytestmark = pytest.mark.anyio


@pytest.fixture
def notes(tmp_path):
    folder = write_notes(tmp_path / "notes")
    out = io.BytesIO()
    Image.new("RGB", (4, 3)).save(out, "JPEG")
    (folder / "plot.png").write_bytes(out.getvalue())
    (folder / "pictures.md").write_text(
        "# P\n\nBefore ![a](plot.png) after ![b](gone.png)\n", encoding="utf-8"
    )
    return folder


@pytest.fixture(params=["auto", "legacy"])
async def client(request, notes, tmp_path):
    config = Config(roots=(make_root(notes),), data_dir=tmp_path / "data", model="none", instant_model="none")
    async with Client(make_server(config), mode=request.param) as opened:
        yield opened


def text_of(result):
    return "\n".join(block.text for block in result.content if block.type == "text")


async def test_an_outline_leads_to_its_sections(client):
    tree = await client.call_tool("md_tree", {"path": "garden/tomatoes.md"})
    assert not tree.is_error
    for row in tree.structured_content["rows"]:
        section = await client.call_tool("md_section", {"path": row["id"]})
        assert f"L{row['lines'][0]}–{row['lines'][1]}" in text_of(section)
        by_heading = {"file": "garden/tomatoes.md", "heading": row["id"].partition("#")[2]}
        assert text_of(await client.call_tool("md_section", by_heading)) == text_of(section)


async def test_lists_and_ranges_may_come_as_text(client):
    several = await client.call_tool(
        "get_documents", {"select": '["tomatoes", {"doc": "soup", "lines": [1, 2]}]'}
    )
    assert [row["path"] for row in several.structured_content["rows"]] == [
        "garden/tomatoes.md",
        "kitchen/soup.md",
    ]
    one = await client.call_tool("get_documents", {"select": "tomatoes"})
    assert one.structured_content["rows"][0]["path"] == "garden/tomatoes.md"
    alone = await client.call_tool("get_documents", {"select": {"doc": "tomatoes", "sections": ["watering"]}})
    assert "section watering" in text_of(alone)


async def test_pictures_are_blocks_of_the_type_of_their_bytes(client):
    result = await client.call_tool("read_md_with_images", {"uri": "pictures.md"})
    assert [block.type for block in result.content] == ["text", "image", "text"]
    assert result.content[1].mime_type == "image/jpeg"
    assert base64.b64decode(result.content[1].data).startswith(b"\xff\xd8")
    assert "gone.png is not sent" in result.content[2].text
    assert len(result.structured_content["notes"]) == 1


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("md_tree", {"path": "garden/tomatos.md"}, "garden/tomatoes.md"),
        ("md_section", {"path": "garden/tomatoes.md", "heading": "zzz"}, "md_tree(path)"),
        ("md_section", {"path": "garden/tomatoes.md"}, "heading is missing"),
        ("md_frontmatter", {"path": "../x.md"}, "outside the root"),
        ("list_documents", {"root": "nowhere"}, "no folder"),
        ("get_documents", {"select": [{"doc": "a", "root": "b"}]}, "both doc and root"),
        ("get_documents", {"select": []}, "select is empty"),
        ("index_md", {"uri": "https://example.com/x.md"}, "--allow-domain"),
        ("read_md_with_images", {"uri": "pictures.md", "line_range": [3, 1]}, "reversed"),
        ("read_md_with_images", {"uri": "pictures.md", "max_image": 3}, "did you mean 'max_images'?"),
        ("md_vault_index", {"query": "node", "node_id": "tomatos"}, "tomatoes"),
        ("md_vault_index", {"query": "nodes"}, "node"),
        ("md_tree", {"path": "garden/tomatoes.md", "max_tokens": 5}, "max_tokens"),
    ],
)
async def test_an_error_says_what_to_do(client, tool, arguments, said):
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    assert said in text_of(result)


async def test_the_graph_and_lists_answer(client, notes):
    stats = await client.call_tool("md_vault_index", {"query": "stats"})
    assert "7 notes" in text_of(stats)
    listed = await client.call_tool("list_documents", {})
    for row in listed.structured_content["rows"]:
        assert not (await client.call_tool("md_frontmatter", {"path": row["id"]})).is_error
    (notes / "garden/tomatoes.md").unlink()
    gone = await client.call_tool("md_vault_index", {"query": "node", "node_id": "tomatoes"})
    assert gone.is_error


async def test_the_schemas_are_those_of_the_snapshot(notes, tmp_path):
    assert json.loads(SNAPSHOT.read_text(encoding="utf-8")) == await listed_tools(notes, tmp_path)


async def listed_tools(notes, tmp_path):
    config = Config(roots=(make_root(notes),), data_dir=tmp_path / "data", model="none", instant_model="none")
    async with Client(make_server(config, "all")) as client:
        tools = (await client.list_tools()).tools
    return [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools]


def test_the_page_of_tools_is_made_from_the_code():
    page = HERE.parents[1] / "docs" / "tools.md"
    assert page.read_text(encoding="utf-8") == tools_page(), "run make docs"


if __name__ == "__main__":
    import tempfile

    import anyio

    with tempfile.TemporaryDirectory() as name:
        made = anyio.run(listed_tools, write_notes(Path(name) / "notes"), Path(name))
        SNAPSHOT.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
