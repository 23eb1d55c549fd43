"""Commands that read notes: tree, section, read, frontmatter, graph."""

import re
import sys
from pathlib import Path
from typing import Any

import click

from searchsvc.errors import SearchError
from searchsvc.terminal import (
    ALLOW_DOMAIN,
    ALLOW_PATH,
    EXIT_NOTHING_FOUND,
    JSON,
    ROOTS,
    command,
    make_config,
    print_json,
    print_reply,
    ready_service,
)

_BUDGET = click.option(
    "--budget", default=20_000, type=click.IntRange(min=100), show_default=True, help="Tokens at most."
)
_CURSOR = click.option("--cursor", default="", help="Go on where an earlier reply stopped.")
_MAX_PICTURES = 20
_LINES = re.compile(r"(.+):(\d+)(?:-(\d+))?")
_HOST = re.compile(r"\w+://[^/]*")


def _documents(context: click.Context, roots: tuple[Path, ...], path: str = "", **access: Any) -> Any:
    """Return the reading desk; without roots, a file named by its path brings its own folder."""
    from searchsvc.documents import Documents
    from searchsvc.library import Library

    file = Path(_split_lines(path)[0].partition("#")[0]).expanduser() if path else None
    if not roots and file is not None and file.is_absolute() and file.is_file():
        roots = (file.parent,)
    config = make_config(context, roots, **access)
    return Documents(Library(config.roots, config), config)


@click.command(short_help="Outline a note.")
@click.argument("path")
@ROOTS
@click.option("--depth", default=6, type=click.IntRange(1, 6), show_default=True, help="Levels of headings.")
@_BUDGET
@_CURSOR
@ALLOW_PATH
@JSON
@click.pass_context
@command
def tree(
    context: click.Context,
    path: str,
    roots: tuple[Path, ...],
    depth: int,
    budget: int,
    cursor: str,
    allow_paths: tuple[Path, ...],
    as_json: bool,
) -> None:
    """Outline the note PATH: every heading with its lines and token cost."""
    documents = _documents(context, roots, path, allow_paths=allow_paths or None)
    reply = documents.md_tree(path, max_depth=depth, max_tokens=budget, cursor=cursor)
    print_reply(reply, as_json=as_json)


@click.command(short_help="Print one section of a note.")
@click.argument("path")
@click.argument("heading", default="")
@ROOTS
@click.option("--own", is_flag=True, help="Without the sections below it.")
@_BUDGET
@ALLOW_PATH
@JSON
@click.pass_context
@command
def section(
    context: click.Context,
    path: str,
    heading: str,
    roots: tuple[Path, ...],
    own: bool,
    budget: int,
    allow_paths: tuple[Path, ...],
    as_json: bool,
) -> None:
    """Print one section of the note PATH: by its id (PATH#slug), its HEADING, or a part of that."""
    documents = _documents(context, roots, path, allow_paths=allow_paths or None)
    reply = documents.md_section(path, heading, include_subsections=not own, max_tokens=budget)
    print_reply(reply, as_json=as_json)


@click.command(short_help="Print documents, sections or lines.")
@click.argument("selection", nargs=-1, required=True)
@ROOTS
@click.option("--no-code", is_flag=True, help="Leave code blocks out.")
@click.option(
    "--images",
    type=click.Path(path_type=Path, file_okay=False),
    help="Save the pictures shown into a folder.",
)
@_BUDGET
@_CURSOR
@ALLOW_PATH
@ALLOW_DOMAIN
@JSON
@click.pass_context
@command
def read(
    context: click.Context,
    selection: tuple[str, ...],
    roots: tuple[Path, ...],
    no_code: bool,
    images: Path | None,
    budget: int,
    cursor: str,
    allow_paths: tuple[Path, ...],
    allow_domains: tuple[str, ...],
    as_json: bool,
) -> None:
    """Print documents, sections or lines: each of SELECTION is a path, an id, PATH:FIRST-LAST or PATH:LINE.

    A single allowed address (--allow-domain) is fetched; lines may stand behind it, too.
    """
    documents = _documents(
        context, roots, selection[0], allow_paths=allow_paths or None, allow_domains=allow_domains or None
    )
    if len(selection) == 1 and "://" in selection[0]:
        if cursor:
            raise click.UsageError(
                "--cursor does not go with an address; give its lines, as ADDRESS:FIRST-LAST"
            )
        count = 0 if images is None else _MAX_PICTURES
        uri, lines = _split_lines(selection[0])
        reply = documents.read_md_with_images(uri, line_range=lines, max_images=count, max_tokens=budget)
    else:
        select = [_selector(documents, item) for item in selection]
        reply = documents.get_documents(
            select, include_images=images is not None, include_code=not no_code, max_tokens=budget,
            cursor=cursor,
        )  # fmt: skip
    if images is not None:
        _save_pictures(reply, images)
    print_reply(reply, as_json=as_json)
    sys.exit(0 if reply.rows else EXIT_NOTHING_FOUND)


@click.command(short_help="Print the front matter of a note.")
@click.argument("path")
@ROOTS
@_BUDGET
@ALLOW_PATH
@JSON
@click.pass_context
@command
def frontmatter(
    context: click.Context,
    path: str,
    roots: tuple[Path, ...],
    budget: int,
    allow_paths: tuple[Path, ...],
    as_json: bool,
) -> None:
    """Print the front matter of the note PATH as typed values."""
    documents = _documents(context, roots, path, allow_paths=allow_paths or None)
    reply = documents.md_frontmatter(path, max_tokens=budget)
    print_json(reply.rows[0]) if as_json else print_reply(reply, as_json=False)


@click.command(short_help="Tell how notes link.")
@click.argument("query", type=click.Choice(
    ["stats", "node", "neighbors", "search_type", "most_connected", "isolated", "path"]
))  # fmt: skip
@click.argument("node", default="")
@ROOTS
@click.option("--depth", type=int, help="How far for neighbors, how many for most_connected.")
@_BUDGET
@_CURSOR
@JSON
@click.pass_context
@command
def graph(
    context: click.Context,
    query: str,
    node: str,
    roots: tuple[Path, ...],
    depth: int | None,
    budget: int,
    cursor: str,
    as_json: bool,
) -> None:
    """Tell how notes link: QUERY about the whole, a NODE, a type, or the way from A to B (A>B)."""
    service = ready_service(context, roots, {"model": "none"})
    reply = service.md_vault_index(query, node_id=node, depth=depth, max_tokens=budget, cursor=cursor)
    print_reply(reply, as_json=as_json)


READING_COMMANDS = (tree, section, read, frontmatter, graph)


def _selector(documents: Any, item: str) -> Any:
    name, lines = _split_lines(item)
    if lines is None or _is_note(documents, item):
        return item
    return {"doc": name, "lines": lines}


def _split_lines(item: str) -> tuple[str, list[int] | None]:
    """Return a name and the lines behind it; none where there are none, such as behind a host with a port."""
    found = _LINES.fullmatch(item)
    if found is None or _HOST.fullmatch(found[1]):
        return item, None
    return found[1], [int(found[2]), int(found[3] or found[2])]


def _is_note(documents: Any, item: str) -> bool:
    """Tell whether a name that ends like lines is a note's, as ``journal:2026`` in a root ``journal``."""
    try:
        documents.library.find(item)
    except SearchError:
        return False
    return True


def _save_pictures(reply: Any, folder: Path) -> None:
    pictures = [block for block in reply.blocks if not isinstance(block, str)]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for number, picture in enumerate(pictures, 1):
            (folder / f"{number:02}.{picture.media_type.rpartition('/')[2]}").write_bytes(picture.data)
    except OSError as error:
        raise click.ClickException(f"the pictures cannot be saved into {folder}: {error.strerror}") from error
    click.echo(f"{len(pictures)} pictures saved into {folder}", err=True)
