"""Resources and their templates over the protocol, and completions of what they take."""

import json
import re
from urllib.parse import quote

import pytest
from mcp import MCPError
from mcp.client import Client
from mcp.types import PromptReference, ResourceTemplateReference

from searchsvc import __version__
from searchsvc.tokens import cost
from tests.notes import NOTES, write_notes
from tests.serving.reader_client import configure, serve, text_of

pytestmark = pytest.mark.anyio

NOTE, SECTION = "note:///{+path}", "section:///{+path}{?heading}"
ODD = {
    "with space.md": "# Space\n\nA note with a blank in its name.\n",
    "café/é.md": "# É\n\nAccents.\n",
    "100%2F done.md": "# Percent\n\nA name with a sign.\n",
    "a/b/c/deep.md": "# Deep\n\n## Below\n\nFar down.\n",
    "crlf.md": "# Ends\r\n\r\nlines end in two signs\r\n",
}


@pytest.fixture
def config(tmp_path):
    settings = configure(tmp_path, max_reply_tokens=2000)
    write_notes(tmp_path / "notes", ODD)
    (tmp_path / "outside/secret.md").write_text("# Secret\n\nkeep out\n", encoding="utf-8")
    (tmp_path / "notes/link.md").symlink_to(tmp_path / "outside/secret.md")
    (tmp_path / "notes/linked").symlink_to(tmp_path / "outside")
    (tmp_path / "notes/.hidden.md").write_text("# Hidden\n\nkeep out\n", encoding="utf-8")
    return settings


@pytest.fixture(params=["auto", "legacy"])
async def client(request, config):
    async with Client(serve(config), mode=request.param) as opened:
        yield opened


async def read(client, uri):
    (content,) = (await client.read_resource(uri)).contents
    return content


async def refused(client, uri):
    with pytest.raises(MCPError) as error:
        await client.read_resource(uri)
    return str(error.value)


@pytest.mark.proves("R-verbatim")
async def test_every_note_is_a_resource_by_its_path(client):
    for path, text in {**NOTES, **ODD}.items():
        content = await read(client, f"note:///{quote(path)}")
        assert content.text.split("\n") == text.replace("\r\n", "\n").rstrip("\n").split("\n")
        assert content.mime_type == "text/markdown"


async def test_a_section_is_a_resource_by_its_heading_or_id(client):
    by_heading = await read(client, "section:///garden/tomatoes.md?heading=Watering")
    assert "Water tomatoes deeply twice a week" in by_heading.text
    assert "Brown spots" not in by_heading.text
    by_slug = await read(client, "section:///a/b/c/deep.md?heading=deep/below")
    assert "Far down." in by_slug.text


async def test_what_is_missing_is_said_with_the_nearest(client):
    assert "garden/tomatoes.md" in await refused(client, "note:///garden/tomatos.md")
    assert "Watering" in await refused(client, "section:///garden/tomatoes.md?heading=Waterings-of-the-moon")
    assert "heading is missing" in await refused(client, "section:///garden/tomatoes.md")


@pytest.mark.proves("R-jail")
@pytest.mark.parametrize(
    "path",
    ["../outside/secret.md", "%2e%2e/outside/secret.md", "garden/../../outside/secret.md", "/etc/passwd",
     "..%2Foutside%2Fsecret.md", "{tmp}/outside/secret.md", "link.md", "linked/secret.md", ".hidden.md",
     "papers/marsh.pdf", "C:/x.md", "a%00b.md"],
)  # fmt: skip
@pytest.mark.parametrize("scheme", ["note:///{}", "section:///{}?heading=Secret"])
async def test_nothing_outside_is_read(client, tmp_path, path, scheme):
    said = await refused(client, scheme.format(path.replace("{tmp}", str(tmp_path))))
    assert "keep out" not in said


async def test_a_note_larger_than_the_cap_is_cut_and_says_how_to_read_on(client, config, tmp_path):
    text = "# Long\n\n" + "".join(f"Line {number} of many.\n" for number in range(3000))
    (tmp_path / "notes/long.md").write_text(text, encoding="utf-8")
    content = await read(client, "note:///long.md")
    assert cost(content.text) <= 2000
    assert "Line 5 of many." in content.text
    call = re.search(r'Next: get_documents\(select=\["long.md"\]\) with cursor="([^"]+)"', content.text)
    async with Client(serve(config, "read")) as other:
        arguments = {"select": ["long.md"], "cursor": call[1], "max_tokens": 2000}
        more = text_of(await other.call_tool("get_documents", arguments))
    last = re.findall(r"Line (\d+) of many", content.text)[-1]
    assert f"\nLine {int(last) + 1} of many." in more
    assert f"Line {last} of many." not in more
    section = await read(client, "section:///long.md?heading=Long")
    assert cost(section.text) <= 2000


async def test_the_resources_of_the_reader_are_json(client, tmp_path):
    listed = {str(item.uri): item for item in (await client.list_resources()).resources}
    assert set(listed) == {"reader://project", "reader://database", "reader://documents/recent"}
    facts = {}
    for uri, item in listed.items():
        assert item.mime_type == "application/json"
        facts[uri] = json.loads((await read(client, uri)).text)
    project = facts["reader://project"]
    assert (project["name"], project["version"]) == ("searchsvc", __version__)
    assert project["roots"] == ["notes", "imports"]
    assert str(tmp_path) not in json.dumps(facts)
    assert {root["name"] for root in facts["reader://database"]["roots"]} == {"notes", "imports"}
    recent = facts["reader://documents/recent"]
    assert {row["doc_id"] for row in recent} >= {"café/é.md", "with space.md"}
    assert len(recent) <= 20


async def test_without_the_toolset_there_are_templates_only(config):
    async with Client(serve(config, "")) as client:
        assert not (await client.list_resources()).resources
        templates = (await client.list_resource_templates()).resource_templates
        assert {template.uri_template for template in templates} == {NOTE, SECTION}
        assert "Tomatoes" in (await read(client, "note:///garden/tomatoes.md")).text
        await refused(client, "reader://project")


async def complete(client, uri, name, value, **context):
    found = await client.complete(
        ResourceTemplateReference(type="ref/resource", uri=uri), {"name": name, "value": value},
        context_arguments=context or None,
    )  # fmt: skip
    return found.completion


async def test_paths_and_headings_are_completed(client):
    paths = await complete(client, NOTE, "path", "gar")
    assert paths.values == ["garden/compost.md", "garden/tomatoes.md"]
    assert (await complete(client, SECTION, "path", "CAFÉ")).values == ["café/é.md"]
    assert (await complete(client, NOTE, "path", "tomatoes")).values == ["garden/tomatoes.md"]
    headings = await complete(client, SECTION, "heading", "w", path="garden/tomatoes.md")
    assert headings.values == ["Watering"]
    everything = await complete(client, SECTION, "heading", "", path="garden/tomatoes.md")
    assert set(everything.values) == {"Tomatoes", "Watering", "Blight"}
    for name, context in (("heading", {}), ("heading", {"path": "none.md"}), ("other", {})):
        assert (await complete(client, SECTION, name, "", **context)).values == []
    assert "keep out" not in str(await complete(client, SECTION, "heading", "", path="../outside/secret.md"))


async def test_what_is_completed_can_be_read(client):
    for path in (await complete(client, NOTE, "path", "")).values:
        assert (await read(client, f"note:///{quote(path)}")).text


async def test_more_than_a_hundred_are_cut_and_counted(client, tmp_path):
    names = {f"many/note {number:03}.md": "# M\n" for number in range(130)}
    write_notes(tmp_path / "notes", names)
    many = "".join(f"## Heading {number}\n\nx\n\n" for number in range(120))
    (tmp_path / "notes/headings.md").write_text(many, encoding="utf-8")
    found = await complete(client, SECTION, "heading", "heading 1", path="headings.md")
    assert len(found.values) == 1 + 10 + 20
    found = await complete(client, SECTION, "heading", "", path="headings.md")
    assert (len(found.values), found.total, found.has_more) == (100, 120, True)


async def test_more_paths_than_fit_are_cut_and_counted(config, tmp_path):
    write_notes(tmp_path / "notes", {f"many/note {number:03}.md": "# M\n" for number in range(130)})
    async with Client(serve(config)) as client:
        found = await complete(client, NOTE, "path", "many/")
    assert (len(found.values), found.total, found.has_more) == (100, 130, True)
    assert found.values[0] == "many/note 000.md"


async def test_prompts_are_not_completed(client):
    found = await client.complete(PromptReference(type="ref/prompt", name="x"), {"name": "path", "value": ""})
    assert found.completion.values == []
