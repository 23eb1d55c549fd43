"""Commands for upkeep: vectors (export, import) and doctor."""

import sys
from pathlib import Path

import click

from searchsvc.errors import SearchError
from searchsvc.terminal import EXIT_FAILED, JSON, ROOTS, command, make_config, print_json

_MARKS = {"ok": "ok     ", "warning": "warning", "fault": "FAULT  "}


@click.group(short_help="Move vectors between machines.")
def vectors() -> None:
    """Write vectors into one file, or take them from one.

    Vectors made on a fast machine serve on a slow one that has the same notes. They are matched by the
    hash of each text with its place; the file holds no text.
    """


@vectors.command("export")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--profile", default="", help="Model name or identity; default: the profile in use.")
@click.option("--force", is_flag=True, help="Replace FILE.")
@ROOTS
@JSON
@click.pass_context
@command
def export(
    context: click.Context, file: Path, profile: str, force: bool, roots: tuple[Path, ...], as_json: bool
) -> None:
    """Write the vectors of a profile into FILE (.npz)."""
    from searchsvc.portable import export_vectors
    from searchsvc.service import Service

    done = export_vectors(Service(make_config(context, roots)), file, profile, overwrite=force)
    if as_json:
        print_json(done)
    else:
        click.echo(
            f"{done.file}: {done.texts} texts, {done.vectors} vectors of {done.profile}, "
            f"{done.bytes / 1e6:.1f} MB"
        )


@vectors.command("import")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@ROOTS
@JSON
@click.pass_context
@command
def import_(context: click.Context, file: Path, roots: tuple[Path, ...], as_json: bool) -> None:
    """Take the vectors in FILE for the notes under the roots, as far as their texts are the same."""
    from searchsvc.portable import import_vectors
    from searchsvc.service import Service

    service = Service(make_config(context, roots))
    service.index()
    done = import_vectors(service, file)
    if as_json:
        print_json(done)
        return
    click.echo(
        f"{done.profile}: {done.added} texts have vectors now; {done.known} had them, {done.unmatched} of "
        f"the file match no text here, {done.missing} texts here still lack vectors"
    )
    if done.added and done.missing:
        click.echo("run `searchsvc embed` with that model for the rest")
    elif done.added:
        click.echo(f"to search with them: searchsvc profiles use {done.profile}")


@click.command(short_help="Find out what is wrong and how to put it right.")
@ROOTS
@JSON
@click.pass_context
@command
def doctor(context: click.Context, roots: tuple[Path, ...], as_json: bool) -> None:
    """Check settings, folders, index, model files and servers, and say the fix for each fault.

    Embeds one text with each model. Exit code 1 when there is a fault.
    """
    from searchsvc.doctor import Check, examine

    checks: list[Check] = []
    try:
        checks.extend(examine(make_config(context, roots)))
    except SearchError as error:
        checks.append(Check("settings", "fault", str(error), "correct the setting that is named"))
    if as_json:
        print_json(checks)
    else:
        for check in checks:
            click.echo(f"{_MARKS[check.state]} {check.name}: {check.found}")
            if check.fix:
                click.echo(f"          -> {check.fix}")
    if any(check.state == "fault" for check in checks):
        sys.exit(EXIT_FAILED)


UPKEEP_COMMANDS = (vectors, doctor)
