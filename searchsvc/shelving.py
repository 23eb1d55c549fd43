"""One document put on the shelf for a caller: imported, indexed at once, and described."""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from searchsvc.answering.shelf import describe
from searchsvc.config import imports_dir
from searchsvc.errors import ConfigError, NotFound, QueryError, ReadingError, SearchError
from searchsvc.importing.job import CONVERTERS, Row, import_documents
from searchsvc.importing.sources import suffix_of
from searchsvc.importing.store import INDEX
from searchsvc.items import Reply
from searchsvc.reader import Reader
from searchsvc.reading.access import locate_attachment
from searchsvc.tokens import cost
from searchsvc.vault import Vault


def import_document(
    reader: Reader,
    path: str,
    *,
    title: str = "",
    author: str = "",
    language: str = "",
    force: bool = False,
) -> Reply:
    """Import a PDF, EPUB or Markdown file that lies in a root or allowed folder, and answer with its id.

    What has not changed since its last import is left as it is, unless ``force``. Title, author and language
    stand for what the document says of itself, now and at later imports; empty ones say nothing. Raises
    ``ReadingError`` when the file cannot be imported, ``AccessDenied`` when it may not be read.
    """
    service = reader.service
    file, into = _file(reader, path), imports_dir(service.config).resolve()
    vault = next((vault for vault in service.vaults if vault.root.path == into), None)
    if vault is None:
        raise ConfigError("imports are not served here: start with --toolsets reader, or set include_imports")
    given = {"title": title, "author": author, "language": language}
    report = import_documents(
        [file],
        into=into,
        force=force,
        overrides={name: value for name, value in given.items() if value},
        workers=1,
        note_bytes=service.config.max_file_bytes,
    )
    row = report.rows[0]
    if row.state == "failed" or row.folder is None:
        raise ReadingError(f"{file.name} is not imported: {row.reason}")
    served = _served_as(reader, path, file)
    notices = (f"the same text is served as {served}; this import is a second copy of it",) if served else ()
    return _reply(reader, vault, replace(row, notices=(*row.notices, *notices)))


def _file(reader: Reader, path: str) -> Path:
    library = reader.service.documents.library
    roots, name = library.split_root(path)
    if suffix_of(name) not in CONVERTERS:
        raise QueryError(f"{path[:200]!r} is no document to import; expected {', '.join(CONVERTERS)}")
    missing = NotFound(f"no file at {path[:200]!r}")
    for root in roots:
        try:
            return locate_attachment(name, root).file
        except NotFound as error:
            missing = error
    raise missing


def _served_as(reader: Reader, path: str, file: Path) -> str:
    """Return how a note that was given for import is named where it is served already; empty if it is not."""
    with suppress(SearchError):
        found = reader.service.documents.library.find(path)
        roots = [vault.root for vault in reader.service.vaults]
        if found.place.file == file and found.place.root in roots:
            return found.location
    return ""


def _reply(reader: Reader, vault: Vault, row: Row) -> Reply:
    """Index what was imported now, rather than at the next look, and describe it."""
    note = f"{row.folder.name if row.folder else ''}/{INDEX}"
    is_indexed = vault.refresh([note])
    shelved = reader.document(vault.root.name, note) if is_indexed else None
    facts = shelved.document.facts if shelved else {"doc_id": note, "path": note}
    lines = [f"{row.state}: {facts['doc_id']}" + (f" · {describe(shelved.document)}" if shelved else "")]
    lines += [f"! {notice}" for notice in row.notices]
    if not is_indexed:
        lines.append("! another process writes the index; the document can be searched in a moment")
    text = "\n".join(lines)
    return Reply((text,), cost(text), ({**facts, "state": row.state},), row.notices)
