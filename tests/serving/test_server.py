import json

import pytest
from mcp import MCPError
from mcp.client import Client
from mcp.types import INVALID_PARAMS

from searchsvc.config import Config, make_root
from searchsvc.errors import ConfigError
from searchsvc.serving.server import make_server
from searchsvc.tokens import cost
from tests.notes import write_notes

pytestmark = pytest.mark.anyio


@pytest.fixture
def config(tmp_path):
    notes = write_notes(tmp_path / "notes")
    return Config(roots=(make_root(notes),), data_dir=tmp_path / "data", model="none", instant_model="none")


@pytest.fixture(params=["auto", "legacy"])
async def client(request, config):
    async with Client(make_server(config), mode=request.param) as opened:
        yield opened


def text_of(result):
    return "\n".join(block.text for block in result.content)


@pytest.mark.proves("R-serving-tools")
async def test_lists_its_tools_read_only_in_few_tokens(client):
    listed = (await client.list_tools()).tools
    assert [tool.name for tool in listed] == [
        "semantic_search",
        "md_find",
        "md_tree",
        "md_section",
        "md_frontmatter",
        "list_documents",
        "get_documents",
        "index_md",
        "read_md_with_images",
        "md_vault_index",
        "status",
    ]
    assert all(tool.annotations.read_only_hint and tool.annotations.idempotent_hint for tool in listed)
    assert all(tool.output_schema for tool in listed)
    wire = json.dumps([tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in listed])
    assert cost(wire) < 3000


async def test_the_first_question_is_answered_from_a_vault_never_indexed_before(client):
    result = await client.call_tool("semantic_search", {"query": "how often to water tomatoes"})
    assert not result.is_error
    assert "garden/tomatoes.md#watering" in text_of(result)
    assert result.structured_content["hits"][0]["id"] == "garden/tomatoes.md#watering"
    assert result.structured_content["hits"][0]["lines"] == [9, 12]


async def test_md_find_and_status_answer(client):
    found = await client.call_tool("md_find", {"query": "tomatoes"})
    assert "garden/tomatoes.md" in text_of(found)
    status = await client.call_tool("status", {})
    assert "6 notes" in text_of(status)
    assert status.structured_content["roots"][0]["notes"] == 6


@pytest.mark.proves("R-serving-arguments")
async def test_an_unknown_argument_is_refused_with_the_nearest(client):
    result = await client.call_tool("semantic_search", {"query": "stock", "max_token": 500})
    assert result.is_error
    assert "did you mean 'max_tokens'?" in text_of(result)


async def test_a_tool_without_arguments_says_that_it_takes_none(client):
    result = await client.call_tool("status", {"verbose": True})
    assert text_of(result) == "status has no parameter 'verbose'; it takes none"
    result = await client.call_tool("md_find", {"query": "stock", "zzz": 1})
    assert "it takes: query, vault_path, max_tokens" in text_of(result)


async def test_common_aliases_and_numbers_sent_as_text_are_understood(client):
    result = await client.call_tool("semantic_search", {"q": "tomatoes", "limit": "2", "tags": '["garden"]'})
    assert not result.is_error
    assert {hit["path"] for hit in result.structured_content["hits"]} <= {
        "garden/tomatoes.md",
        "garden/compost.md",
    }
    assert len(result.structured_content["hits"]) == 2


async def test_text_sent_as_a_number_and_empty_text_for_what_is_left_out_are_understood(client):
    asked = {"query": 404, "queries": ["tomatoes", 5], "mode": "", "top_k": "", "properties": "", "tags": ""}
    result = await client.call_tool("semantic_search", asked)
    assert not result.is_error, text_of(result)
    assert result.structured_content["hits"][0]["path"] == "garden/tomatoes.md"
    for wrong in ({"query": True}, {"query": ["tomatoes"]}, {"query": {"text": "tomatoes"}}):
        assert (await client.call_tool("semantic_search", wrong)).is_error


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"query": "tomatoes", "limit": "5x"}, "top_k is '5x'"),
        ({"query": ""}, "query is ''"),
        ({}, "query: Field required"),
        ({"query": "tomatoes", "mode": "magic"}, "mode is 'magic'"),
        ({"query": "tomatoes", "path": "gardn"}, "nearest: 'garden'"),
        ({"query": "tomatoes", "tags": ["gardn"]}, "nearest: 'garden'"),
        ({"query": "tomatoes", "since": "soon"}, "expected a date"),
        ({"query": "tomatoes", "cursor": "5-abcdef"}, "does not belong to this question"),
        ({"query": "tomatoes", "profile": "nope"}, "no profile 'nope'"),
        ({"query": "tomatoes", "mode": "vector"}, "needs vectors"),
        ({"query": "tomatoes", "max_tokens": 5}, "max_tokens is '5'"),
    ],
)
async def test_a_wrong_argument_is_an_error_that_says_what_is_right(client, arguments, said):
    result = await client.call_tool("semantic_search", arguments)
    assert result.is_error
    assert said in text_of(result)


async def test_an_unknown_tool_is_an_error_and_the_session_goes_on(client):
    with pytest.raises(MCPError, match="did you mean 'md_section'") as said:
        await client.call_tool("md_sektion", {})
    assert said.value.error.code == INVALID_PARAMS
    assert not (await client.call_tool("status", {})).is_error


@pytest.mark.proves("R-freshness")
async def test_a_changed_note_is_answered_as_it_is_now(client, config):
    await client.call_tool("semantic_search", {"query": "stock"})
    file = config.roots[0].path / "kitchen/soup.md"
    file.write_text("# Soup\n\n## Stock\n\nUse mushrooms instead of marrow.\n", encoding="utf-8")
    result = await client.call_tool("semantic_search", {"query": "stock"})
    assert "mushrooms" in text_of(result)
    assert "Simmer bones" not in text_of(result)
    file.unlink()
    assert "kitchen/soup.md" not in text_of(await client.call_tool("semantic_search", {"query": "stock"}))


async def test_a_crash_inside_a_tool_shows_the_model_no_details(client, monkeypatch):
    monkeypatch.setattr("searchsvc.service.Service.status", lambda self: 1 / 0)
    result = await client.call_tool("status", {})
    assert result.is_error
    assert "division" not in text_of(result)


def test_an_unknown_toolset_is_refused_by_name(config):
    with pytest.raises(ConfigError, match="no toolset 'fnd'; there are: find, read, vault"):
        make_server(config, "fnd")


async def test_an_explanation_is_in_the_text_too(client):
    result = await client.call_tool("semantic_search", {"query": "water tomatoes", "explain": True})
    assert "lexical #1" in text_of(result)
    assert set(result.structured_content["hits"][0]["terms"]) == {"water", "tomato"}
