"""The tools that read: outlines, sections, documents, images. Each is thin over the reading desk."""

from typing import Annotated, Any

from mcp.server.mcpserver import Context
from mcp.types import CallToolResult
from pydantic import Field

from searchsvc.serving.tool import MaxTokens, Tool
from searchsvc.serving.wire import WireReply, reply_to_wire

Path = Annotated[str, Field(description="Path or id", min_length=1, max_length=5_000)]
Uri = Annotated[str, Field(description="Path or URL", min_length=1, max_length=5_000)]


def _desk(ctx: Context[Any]) -> Any:
    return ctx.request_context.lifespan_context.service.documents


def md_tree(
    path: Path,
    ctx: Context[Any],
    max_depth: Annotated[int, Field(ge=1, le=6)] = 6,
    max_tokens: MaxTokens = 4000,
    cursor: str = "",
) -> Annotated[CallToolResult, WireReply]:
    """Outline a note: of every heading its name (id: path#name), lines and tokens."""
    return reply_to_wire(_desk(ctx).md_tree(path, max_depth=max_depth, max_tokens=max_tokens, cursor=cursor))


def md_section(
    path: Path,
    ctx: Context[Any],
    heading: Annotated[str, Field(description="Or part of it", max_length=5_000)] = "",
    include_subsections: bool = True,
    max_tokens: MaxTokens = 4000,
) -> Annotated[CallToolResult, WireReply]:
    """Read one section of a note, verbatim. Leave heading out when path is an id (path#slug)."""
    reply = _desk(ctx).md_section(
        path, heading, include_subsections=include_subsections, max_tokens=max_tokens
    )
    return reply_to_wire(reply)


def md_frontmatter(
    path: Path, ctx: Context[Any], max_tokens: MaxTokens = 2000
) -> Annotated[CallToolResult, WireReply]:
    """Get the front matter as typed values."""
    return reply_to_wire(_desk(ctx).md_frontmatter(path, max_tokens=max_tokens))


def list_documents(
    ctx: Context[Any],
    root: Annotated[str, Field(max_length=5_000)] = ".",
    line_bounds: bool = False,
    section_depth: Annotated[int | None, Field(ge=0, le=6)] = None,
    max_tokens: MaxTokens = 4000,
    cursor: str = "",
) -> Annotated[CallToolResult, WireReply]:
    """List the documents of a folder with id, cost, summary and sections."""
    reply = _desk(ctx).list_documents(
        root, line_bounds=line_bounds, section_depth=section_depth, max_tokens=max_tokens, cursor=cursor
    )
    return reply_to_wire(reply)


def get_documents(
    select: Annotated[
        list[str | dict[str, Any]],
        Field(
            description="Ids, or {doc|root, sections:[…]|lines:[a,b]|pages:[a,b], include_images, "
            "include_code}"
        ),
    ],
    ctx: Context[Any],
    include_images: bool = False,
    include_code: bool = True,
    max_tokens: MaxTokens = 8000,
    cursor: str = "",
) -> Annotated[CallToolResult, WireReply]:
    """Read many documents, sections, lines or pages in one call, verbatim, in order."""
    reply = _desk(ctx).get_documents(
        select, include_images=include_images, include_code=include_code, max_tokens=max_tokens,
        cursor=cursor,
    )  # fmt: skip
    return reply_to_wire(reply)


def index_md(
    uri: Uri,
    ctx: Context[Any],
    max_tokens: MaxTokens = 4000,
    cursor: str = "",
) -> Annotated[CallToolResult, WireReply]:
    """List the sections (heading, line; own images, characters, tokens) of a file, URL or folder."""
    return reply_to_wire(_desk(ctx).index_md(uri, max_tokens=max_tokens, cursor=cursor))


def read_md_with_images(
    uri: Uri,
    ctx: Context[Any],
    section: Annotated[str, Field(max_length=5_000)] = "",
    line_range: Annotated[list[int] | None, Field(description="[first, last]")] = None,
    pages: list[int] | None = None,
    max_images: Annotated[int, Field(ge=0, le=50)] = 10,
    max_tokens: MaxTokens = 12_000,
) -> Annotated[CallToolResult, WireReply]:
    """Read Markdown with its images in place, where pictures matter: they cost tokens."""
    reply = _desk(ctx).read_md_with_images(
        uri, section=section, line_range=line_range, pages=pages, max_images=max_images, max_tokens=max_tokens
    )
    return reply_to_wire(reply)


_NOTE = dict.fromkeys(("file", "note", "doc", "uri", "id"), "path")
_URI = dict.fromkeys(("path", "file", "url", "folder"), "uri")
READING_TOOLS = (
    Tool(md_tree, "Outline of a note", _NOTE),
    Tool(md_section, "Read a section", _NOTE | dict.fromkeys(("section", "title", "query"), "heading")),
    Tool(md_frontmatter, "Front matter", _NOTE),
    Tool(list_documents, "List documents", dict.fromkeys(("path", "folder", "vault_path"), "root")),
    Tool(get_documents, "Read documents", dict.fromkeys(("documents", "docs", "ids", "selectors"), "select")),
    Tool(index_md, "Index of a file or folder", _URI, is_open=True),
    Tool(read_md_with_images, "Read with images", _URI | {"heading": "section", "lines": "line_range"},
         is_open=True),
)  # fmt: skip
