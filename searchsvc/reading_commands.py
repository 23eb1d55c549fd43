"""Commands that read notes: tree, section, read, frontmatter, graph."""

import re
import sys
from pathlib import Path
from typing import Any

import click

from searchsvc.errors import QueryError
from searchsvc.terminal import (
    ALLOW_DOMAIN,
    ALLOW_PATH,
    EXIT_NOTHING_FOUND,
    JSON,
    ROOTS,
    command,
    make_config,
    print_json,
    ready_service,
)

_BUDGET = click.option(
    "--budget", default=20_000, type=click.IntRange(min=100), show_default=True, help="Tokens at most."
)
_MAX_PICTURES = 20
_LINES = re.compile(r"(.+):(\d+)-(\d+)")


def _documents(context: click.Context, roots: tuple[Path, ...], path: str = "", **access: Any) -> Any:
    """Return the reading desk; without roots, a file named by its path brings its own folder."""
    from searchsvc.documents import Documents
    from searchsvc.library import Library

    file = Path(path.partition("#")[0]).expanduser() if path else None
    if not roots and file is not None and file.is_absolute() and file.is_file():
        roots = (file.parent,)
    config = make_config(context, roots, **access)
    return Documents(Library(config.roots, config), config)


@click.command(short_help="Outline a note.")
@click.argument("path")
@ROOTS
@click.option("--depth", default=6, type=click.IntRange(1, 6), show_default=True, help="Levels of headings.")
@_BUDGET
@JSON
@click.pass_context
@command
def tree(
    context: click.Context, path: str, roots: tuple[Path, ...], depth: int, budget: int, as_json: bool
) -> None:
    """Outline the note PATH: every heading with its lines and token cost."""
    documents = _documents(context, roots, path)
    if as_json:
        print_json(documents.tree(path))
    else:
        click.echo(documents.md_tree(path, max_depth=depth, max_tokens=budget).text)


@click.command(short_help="Print one section of a note.")
@click.argument("path")
@click.argument("heading", default="")
@ROOTS
@click.option("--own", is_flag=True, help="Without the sections below it.")
@_BUDGET
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
    as_json: bool,
) -> None:
    """Print one section of the note PATH: by its id (PATH#slug), its HEADING, or a part of that."""
    documents = _documents(context, roots, path)
    reply = documents.md_section(path, heading, include_subsections=not own, max_tokens=budget)
    print_json(reply) if as_json else click.echo(reply.text)


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
    allow_paths: tuple[Path, ...],
    allow_domains: tuple[str, ...],
    as_json: bool,
) -> None:
    """Print documents, sections or lines: each of SELECTION is a path, an id, or PATH:FIRST-LAST.

    A single allowed address (--allow-domain) is fetched.
    """
    documents = _documents(
        context, roots, selection[0], allow_paths=allow_paths or None, allow_domains=allow_domains or None
    )
    if len(selection) == 1 and "://" in selection[0]:
        count = 0 if images is None else _MAX_PICTURES
        reply = documents.read_md_with_images(selection[0], max_images=count, max_tokens=budget)
    else:
        select = [_selector(item) for item in selection]
        reply = documents.get_documents(
            select, include_images=images is not None, include_code=not no_code, max_tokens=budget
        )
    if images is not None:
        _save_pictures(reply, images)
    print_json(reply) if as_json else click.echo(reply.text)
    sys.exit(0 if reply.rows else EXIT_NOTHING_FOUND)


@click.command(short_help="Print the front matter of a note.")
@click.argument("path")
@ROOTS
@JSON
@click.pass_context
@command
def frontmatter(context: click.Context, path: str, roots: tuple[Path, ...], as_json: bool) -> None:
    """Print the front matter of the note PATH as typed values."""
    reply = _documents(context, roots, path).md_frontmatter(path, max_tokens=20_000)
    print_json(reply.rows[0]) if as_json else click.echo(reply.text)


@click.command(short_help="Tell how notes link.")
@click.argument("query", type=click.Choice(
    ["stats", "node", "neighbors", "search_type", "most_connected", "isolated", "path"]
))  # fmt: skip
@click.argument("node", default="")
@ROOTS
@click.option("--depth", type=int, help="How far for neighbors, how many for most_connected.")
@_BUDGET
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
    as_json: bool,
) -> None:
    """Tell how notes link: QUERY about the whole, a NODE, a type, or the way from A to B (A>B)."""
    service = ready_service(context, roots, {"model": "none"})
    reply = service.md_vault_index(query, node_id=node, depth=depth, max_tokens=budget)
    print_json(reply) if as_json else click.echo(reply.text)


READING_COMMANDS = (tree, section, read, frontmatter, graph)


def _selector(item: str) -> Any:
    lines = _LINES.fullmatch(item)
    if lines is None:
        return item
    return {"doc": lines[1], "lines": [int(lines[2]), int(lines[3])]}


def _save_pictures(reply: Any, folder: Path) -> None:
    pictures = [block for block in reply.blocks if not isinstance(block, str)]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for number, picture in enumerate(pictures, 1):
            (folder / f"{number:02}.{picture.media_type.rpartition('/')[2]}").write_bytes(picture.data)
    except OSError as error:
        raise QueryError(f"the pictures cannot be saved into {folder}: {error.strerror}") from error
    click.echo(f"{len(pictures)} pictures saved into {folder}", err=True)
