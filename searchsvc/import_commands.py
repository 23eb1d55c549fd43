"""The command that makes notes of books and papers: import."""

import os
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from searchsvc.config import imports_dir
from searchsvc.terminal import (
    EXIT_FAILED,
    EXIT_PARTIAL,
    JSON,
    command,
    make_config,
    print_json,
    progress_bar,
)

if TYPE_CHECKING:
    from searchsvc.importing.job import ImportReport, Row

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


@click.command("import", short_help="Make searchable notes of PDF, EPUB and Markdown files.")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=click.Path(path_type=Path))
@click.option(
    "--into", type=click.Path(path_type=Path, file_okay=False), help="Folder for the results. "
    "Default: imports in the data folder."
)  # fmt: skip
@click.option("--title", help="Title, for a single file; kept by later imports, '' takes it back.")
@click.option("--author", help="Author, likewise.")
@click.option("--language", help="Language as a tag such as en or pt-BR, likewise.")
@click.option("--force", is_flag=True, help="Also what has not changed since it was imported.")
@click.option(
    "--timeout",
    "seconds",
    type=click.FloatRange(min=1),
    help="Seconds that one document may take. Default: 300.",
)
@JSON
@click.pass_context
@command
def import_(
    context: click.Context,
    paths: tuple[Path, ...],
    into: Path | None,
    title: str | None,
    author: str | None,
    language: str | None,
    force: bool,
    seconds: float | None,
    as_json: bool,
) -> None:
    """Make Markdown of the documents at each PATH: a file, a folder with all below it, or a glob pattern.

    Reads .pdf, .epub, .md, .markdown, .mdx and .qmd. Every document gets a folder of its own with its text
    and images; the originals are never changed. What has not changed is skipped, so that a job that was
    stopped goes on where it was. What is hidden and symbolic links are left out.

    Exit codes: 0 all are imported or unchanged, 4 some failed, 1 none could be imported, 130 interrupted.
    """
    given = {"title": title, "author": author, "language": language}
    overrides = {name: value for name, value in given.items() if value is not None}
    _check(overrides, paths)
    from searchsvc.importing.job import SECONDS, import_documents

    config = make_config(context, ())
    with progress_bar() as progress:
        report = import_documents(
            paths,
            into=into or imports_dir(config),
            force=force,
            overrides=overrides,
            progress=progress,
            workers=config.workers,
            seconds=SECONDS if seconds is None else seconds,
            note_bytes=config.max_file_bytes,
        )
    _print(report, as_json=as_json)
    failed = report.count("failed")
    if failed == len(report.rows):
        sys.exit(EXIT_FAILED)
    sys.exit(EXIT_PARTIAL if failed else 0)


IMPORT_COMMANDS = (import_,)


def _check(overrides: dict[str, str], paths: tuple[Path, ...]) -> None:
    if overrides and (len(paths) != 1 or not paths[0].is_file()):
        found = "a folder or pattern" if len(paths) == 1 else f"{len(paths)} paths"
        raise click.UsageError(f"--{next(iter(overrides))} goes with a single file, found {found}")
    language = overrides.get("language")
    if language and not re.fullmatch(r"[A-Za-z]{1,8}([-_][A-Za-z0-9]{1,8}){0,8}", language):
        raise click.UsageError(f"--language is {language!r}, expected a tag such as en or pt-BR")


def _print(report: "ImportReport", *, as_json: bool) -> None:
    failed = report.count("failed")
    done = len(report.rows) - failed
    if as_json:
        counts = {state: report.count(state) for state in ("imported", "unchanged", "failed")}
        print_json({"into": report.into, **counts, "documents": report.rows})
        return
    for row in report.rows:
        click.echo(_CONTROL.sub("\ufffd", _line(row)), err=row.state == "failed")
    if not report.rows:
        click.echo("no documents found; expected .pdf, .epub, .md, .markdown, .mdx or .qmd files", err=True)
    if done:
        click.echo(f"{done} of {len(report.rows)} documents are in {report.into}")
        click.echo(f'to search them: searchsvc search "a question" --root {_quoted(report.into)}')


def _line(row: "Row") -> str:
    pages = f" ({row.pages} page{'s' if row.pages > 1 else ''})" if row.pages else ""
    folder = f" -> {row.folder.name}" if row.folder and row.state == "imported" else ""
    remarks = "; ".join((row.reason, *row.notices) if row.reason else row.notices)
    return f"{row.state}: {row.path}{pages}{folder}{f': {remarks}' if remarks else ''}"


def _quoted(folder: Path) -> str:
    return f'"{folder}"' if os.name == "nt" else shlex.quote(str(folder))
