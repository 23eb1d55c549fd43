"""Resources: every note by its path, and what a client may show of the documents; with completions."""

import json
from collections import Counter
from dataclasses import asdict
from typing import Any

import anyio.to_thread
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError
from mcp.types import Completion, CompletionArgument, CompletionContext, ResourceTemplateReference

from searchsvc import __version__
from searchsvc.errors import NotFound, SearchError
from searchsvc.serving.desk import Desk, Desks
from searchsvc.serving.wire import status_to_wire

NOTE = "note:///{+path}"
SECTION = "section:///{+path}{?heading}"
_MARKDOWN, _JSON = "text/markdown", "application/json"
_RECENT = 20
_LEAST_TOKENS = 100
"""No tool takes a smaller budget."""
_MAX_VALUES = 100
"""The protocol allows no more completions in one answer."""


def add_resources(server: MCPServer[Desk], desks: Desks, *, with_reader: bool) -> None:
    """Add the templates of notes and sections; ``with_reader`` the resources of the reader, too."""

    @server.resource(NOTE, name="note", title="A note", mime_type=_MARKDOWN)
    def note(path: str) -> str:
        """Return a note, as much of it as the server's limit of a reply holds."""
        return _told(lambda: _note(desks.desk, path))

    @server.resource(SECTION, name="section", title="A section of a note", mime_type=_MARKDOWN)
    def section(path: str, heading: str = "") -> str:
        """Return one section of a note, by its heading or id."""
        return _told(
            lambda: desks.desk.service.documents.md_section(path, heading, max_tokens=_cap(desks)).text
        )

    @server.completion()  # type: ignore[no-untyped-call, untyped-decorator]
    async def complete(
        ref: Any, argument: CompletionArgument, context: CompletionContext | None
    ) -> Completion | None:
        if not isinstance(ref, ResourceTemplateReference) or ref.uri not in (NOTE, SECTION):
            return None
        given = (context.arguments or {}) if context else {}
        found = await anyio.to_thread.run_sync(_completions, desks.desk, argument, given)
        return Completion(values=found[:_MAX_VALUES], total=len(found), has_more=len(found) > _MAX_VALUES)

    if with_reader:
        _add_reader(server, desks)


def _add_reader(server: MCPServer[Desk], desks: Desks) -> None:
    @server.resource("reader://project", title="What is served", mime_type=_JSON)
    def project() -> str:
        """Return what is served: version, roots, what may be read and imported."""
        return _told(lambda: _project(desks.desk))

    @server.resource("reader://database", title="State of the index", mime_type=_JSON)
    def database() -> str:
        """Return the state of the index: documents, sections, profiles, pending work, problems."""
        return _told(lambda: status_to_wire(desks.desk.service.status()).model_dump_json(indent=1))

    @server.resource("reader://documents/recent", title="Documents changed last", mime_type=_JSON)
    def recent() -> str:
        """Return the documents that were changed last."""
        return _told(lambda: _json([item.document.facts for item in desks.desk.reader().recent(_RECENT)]))


def _told(read: Any) -> str:
    """Return what is read; the text of an error reaches the caller."""
    try:
        return str(read())
    except NotFound as error:
        raise ResourceNotFoundError(str(error)) from error
    except SearchError as error:
        raise ResourceError(str(error)) from error


def _cap(desks: Desks) -> int:
    return int(desks.desk.service.config.max_reply_tokens)


def _note(desk: Desk, path: str) -> str:
    """Return a note verbatim, or its beginning and how to read on."""
    documents = desk.service.documents
    found = documents.library.find(path)
    outline, lines = documents.library.read(found.place)
    if outline.cost <= desk.service.config.max_reply_tokens:
        return "\n".join(lines)
    # A resource is no call that could be repeated with a cursor: the tool that takes one is named.
    call = f"get_documents(select={json.dumps([found.location], ensure_ascii=False)})"
    limit = desk.service.config.max_reply_tokens  # no text has more tokens than bytes
    reply = documents.get_documents([path], max_tokens=max(limit - len(call.encode()), _LEAST_TOKENS))
    before, rest, after = reply.text.rpartition(reply.rest)
    return before + rest.replace("same call", call, 1) + after


def _project(desk: Desk) -> str:
    service = desk.service
    config = service.config
    facts = {
        "name": "searchsvc",
        "version": __version__,
        "roots": [vault.root.name for vault in service.vaults],
        "allowed_domains": list(config.allow_domains),
        "imports": ["pdf", "epub", "markdown"],
        "max_reply_tokens": config.max_reply_tokens,
        "models": [asdict(profile) for profile in service.status().profiles],
    }
    return _json(facts)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1)


def _completions(desk: Desk, argument: CompletionArgument, given: dict[str, str]) -> list[str]:
    """Return the paths, or the headings of the note given before, that go on as the value begins.

    Those that hold the value elsewhere come last.
    """
    documents = desk.service.documents
    if argument.name == "path":
        pairs = [(root, path) for root in documents.library.roots for path in documents.library.listing(root)]
        holders = Counter(path for _, path in pairs)
        names = [f"{root.name}:{path}" if holders[path] > 1 else path for root, path in pairs]
    elif argument.name == "heading" and given.get("path"):
        try:
            names = [row.title for row in documents.tree(given["path"]).rows if row.title]
        except SearchError:
            return []
    else:
        return []
    value = argument.value.casefold()
    holding = [name for name in dict.fromkeys(names) if value in name.casefold()]
    return sorted(holding, key=lambda name: (not name.casefold().startswith(value), name))
