"""The tools of Reader, under their names: a shelf of documents, listed, opened, searched, added to."""

from typing import Annotated, Any, Literal

from mcp.server.mcpserver import Context
from mcp.types import CallToolResult
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo

from searchsvc.errors import QueryError
from searchsvc.serving.tool import MaxTokens, Tool
from searchsvc.serving.wire import WireAnswer, WireReply, answer_reply, reply_to_wire

DocId = Annotated[str, Field(description="Any of doc_id, path, title", max_length=5_000)]
Text = Annotated[str, Field(max_length=5_000)]
FileTypes = list[Literal["markdown", "pdf", "epub"]]
_MAX_SECRET = 5_000


def _unshown(value: Any, info: ValidationInfo) -> str:
    """Refuse what is no text here: the error of a type would repeat what was given, which may be a key."""
    if not isinstance(value, str) or len(value) > _MAX_SECRET:
        raise QueryError(f"{info.field_name} is no text of at most {_MAX_SECRET} characters")
    return value


Secret = Annotated[str, BeforeValidator(_unshown), Field(description="Refused unless the operator allows it")]


class EmbeddingProfile(BaseModel):
    """A profile by its facts."""

    model_config = ConfigDict(extra="forbid")

    provider: str = ""
    model: str = ""
    dimension: int = 0


_ANY_PROFILE = EmbeddingProfile()


def _reader(ctx: Context[Any], db_path: str) -> Any:
    return ctx.request_context.lifespan_context.reader(db_path)


def list_documents(
    ctx: Context[Any],
    limit: Annotated[int, Field(ge=1, le=500)] = 100,
    file_types: FileTypes = [],  # noqa: B006
    db_path: Text = "",
    max_tokens: MaxTokens = 8000,
    cursor: str = "",
) -> Annotated[CallToolResult, WireReply]:
    """List documents with title, author, type, pages, language, cost and date, the latest first."""
    reader = _reader(ctx, db_path)
    return reply_to_wire(
        reader.list_documents(limit=limit, file_types=file_types, max_tokens=max_tokens, cursor=cursor)
    )


def open_document(
    ctx: Context[Any],
    doc_id: DocId = "",
    path: Text = "",
    title: Text = "",
    max_chars: Annotated[int, Field(ge=200, le=400_000)] = 12_000,
    db_path: Text = "",
    max_tokens: MaxTokens = 20_000,
    cursor: str = "",
) -> Annotated[CallToolResult, WireReply]:
    """Read a document, or a section by its id, verbatim and piece by piece."""
    from searchsvc.locating import Locator

    reply = _reader(ctx, db_path).open_document(
        Locator(doc_id, path, title), max_chars=max_chars, max_tokens=max_tokens, cursor=cursor
    )
    return reply_to_wire(reply)


def get_markdown_outline(
    ctx: Context[Any],
    doc_id: DocId = "",
    path: Text = "",
    title: Text = "",
    db_path: Text = "",
    max_tokens: MaxTokens = 4000,
    cursor: str = "",
) -> Annotated[CallToolResult, WireReply]:
    """Outline a document: of every heading its id, lines, pages and tokens."""
    from searchsvc.locating import Locator

    reply = _reader(ctx, db_path).get_markdown_outline(
        Locator(doc_id, path, title), max_tokens=max_tokens, cursor=cursor
    )
    return reply_to_wire(reply)


def search_markdown(
    query: Annotated[str, Field(min_length=1, max_length=10_000)],
    ctx: Context[Any],
    doc_id: DocId = "",
    path: Text = "",
    title: Text = "",
    case_sensitive: bool = False,
    limit: Annotated[int, Field(ge=1, le=200)] = 20,
    db_path: Text = "",
    max_tokens: MaxTokens = 4000,
    cursor: str = "",
) -> Annotated[CallToolResult, WireReply]:
    """Find the paragraphs that hold a text literally, in one document or in all."""
    from searchsvc.locating import Locator

    reply = _reader(ctx, db_path).search_markdown(
        query, Locator(doc_id, path, title), case_sensitive=case_sensitive, limit=limit,
        max_tokens=max_tokens, cursor=cursor,
    )  # fmt: skip
    return reply_to_wire(reply)


def semantic_search_documents(
    ctx: Context[Any],
    query: Annotated[str, Field(max_length=10_000, description="Or query_vector")] = "",
    query_vector: Annotated[list[float], Field(max_length=100_000)] = [],  # noqa: B006
    top_k: Annotated[int, Field(ge=1, le=200)] = 10,
    min_score: Annotated[float, Field(description="Least cosine", ge=-1, le=1)] = -1,
    scan_limit: Annotated[int | None, Field(ge=1, description="Sections compared, the latest first")] = None,
    batch_size: Annotated[int | None, Field(ge=1, description="Vectors read at a time")] = None,
    doc_id: DocId = "",
    path: Text = "",
    title: Text = "",
    file_types: FileTypes = [],  # noqa: B006
    embedding_profile: EmbeddingProfile = _ANY_PROFILE,
    embedding_provider: Text = "",
    embedding_model: Text = "",
    embedding_dimension: Annotated[int | None, Field(ge=1)] = None,
    lm_studio_url: Secret = "",
    openai_base_url: Secret = "",
    openai_api_key: Secret = "",
    embedding_ollama_url: Secret = "",
    embedding_ollama_model: Text = "",
    local_model_path: Secret = "",
    db_path: Text = "",
    max_tokens: MaxTokens = 4000,
    cursor: str = "",
) -> Annotated[CallToolResult, WireAnswer]:
    """Find the sections nearest in meaning to a question or vector, with their cosine as score."""
    from searchsvc.locating import Locator
    from searchsvc.reader_models import ModelArguments

    model = ModelArguments(
        provider=embedding_provider or embedding_profile.provider,
        model=embedding_model or embedding_profile.model,
        dimension=embedding_dimension or embedding_profile.dimension,
        lm_studio_url=lm_studio_url,
        openai_base_url=openai_base_url,
        openai_api_key=openai_api_key,
        embedding_ollama_url=embedding_ollama_url,
        embedding_ollama_model=embedding_ollama_model,
        local_model_path=local_model_path,
    )
    answer = _reader(ctx, db_path).semantic_search_documents(
        query, Locator(doc_id, path, title), query_vector=query_vector, top_k=top_k, min_score=min_score,
        scan_limit=scan_limit or 0, batch_size=batch_size or 0, file_types=file_types, model=model,
        max_tokens=max_tokens, cursor=cursor,
    )  # fmt: skip
    return answer_reply(answer)


def import_document(
    path: Annotated[str, Field(min_length=1, max_length=5_000)],
    ctx: Context[Any],
    title: Text = "",
    author: Text = "",
    language: Text = "",
    force_reimport: bool = False,
    db_path: Text = "",
) -> Annotated[CallToolResult, WireReply]:
    """Add a PDF, EPUB or Markdown file to the documents; what has not changed is left as it is."""
    reply = ctx.request_context.lifespan_context.import_document(
        path, title=title, author=author, language=language, force=force_reimport, db_path=db_path
    )
    return reply_to_wire(reply)


_ONE = {"id": "doc_id", "file": "path", "document_id": "doc_id"}
_ASKING = _ONE | dict.fromkeys(("q", "search", "text"), "query")
_SHELF = ("reader.list_documents", "reader.list_markdown_documents")
_OPEN = ("reader.open_document", "reader.open_markdown_document")
READER_TOOLS = (
    *(Tool(list_documents, "List documents", {"types": "file_types"}, name=name) for name in _SHELF),
    *(Tool(open_document, "Open a document", _ONE, name=name) for name in _OPEN),
    Tool(get_markdown_outline, "Outline of a document", _ONE, name="reader.get_markdown_outline"),
    Tool(search_markdown, "Literal search", _ASKING, name="reader.search_markdown"),
    Tool(semantic_search_documents, "Search by meaning", _ASKING | {"limit": "top_k"},
         name="reader.semantic_search_documents", is_open=True),
    Tool(import_document, "Import a document", {"file": "path", "force": "force_reimport"},
         name="reader.import_document", is_reading=False),
)  # fmt: skip
