"""Commands that make indexes and vectors: index, embed, profiles."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from searchsvc.errors import EmbeddingError
from searchsvc.terminal import (
    EXIT_NOTHING_FOUND,
    EXIT_PARTIAL,
    JSON,
    PATHS,
    ROOTS,
    command,
    make_config,
    model_options,
    print_json,
    progress_bar,
)

if TYPE_CHECKING:
    from searchsvc.batch import EmbedReport
    from searchsvc.indexing import IndexReport
    from searchsvc.service import Service


@click.command(short_help="Index notes, or bring an index up to date.")
@PATHS
@click.option("--name", help="Name of the root, for a single PATH.")
@click.option("--no-embed", is_flag=True, help="Index words only; vectors can be made later.")
@click.option("--instant", is_flag=True, help="Make the vectors of the instant model only: ready in seconds.")
@model_options
@JSON
@click.pass_context
@command
def index(
    context: click.Context,
    paths: tuple[Path, ...],
    name: str | None,
    no_embed: bool,
    instant: bool,
    model: dict[str, Any],
    as_json: bool,
) -> None:
    """Index the notes under PATHS: what is new or changed is read, what is gone is dropped.

    Words and the vectors of the instant model come first, within seconds: from then on the notes can be
    searched. The vectors of the model follow; when that is interrupted, the next run goes on.
    """
    if name and len(paths) != 1:
        raise click.UsageError(f"--name goes with one PATH, {len(paths)} were given")
    from searchsvc.service import Service

    service = Service(make_config(context, paths, name=name, **model))
    report: EmbedReport | None = None
    problem = ""
    with progress_bar() as progress:
        reports = service.index(progress=progress)
        if not as_json:
            _print_reports(reports)
        if not no_embed:
            try:
                service.embed(progress=progress, instant_only=True)
                report = None if instant else service.embed(progress=progress)
            except EmbeddingError as error:
                problem = str(error)
    if as_json:
        print_json({"roots": reports, "embedding": report, "problem": problem})
    elif report is not None:
        click.echo(_summary(service, report))
    elif instant and not problem:
        click.echo("ready to search; the vectors of the model follow with `searchsvc embed`")
    if problem and not as_json:
        click.echo(f"words are indexed, vectors are not complete: {problem}", err=True)
    if problem or (report is not None and report.state == "partial"):
        sys.exit(EXIT_PARTIAL)


@click.command(short_help="Embed what lacks vectors, in one batch job.")
@PATHS
@model_options
@click.option(
    "--dry-run", is_flag=True, help="Say how many texts, tokens, dollars and minutes it would take."
)
@click.option("--limit", type=click.IntRange(min=1), help="Embed at most so many texts, then stop.")
@click.option("--max-rate", type=click.FloatRange(min=0, min_open=True), help="Texts a second, over time.")
@click.option("--nice", type=click.IntRange(1, 19), help="Give way to other programs; 19 the most.")
@click.option("--failures", is_flag=True, help="List the texts that could not be embedded, and why.")
@click.option("--retry-failed", is_flag=True, help="Try those again.")
@JSON
@click.pass_context
@command
def embed(
    context: click.Context,
    paths: tuple[Path, ...],
    model: dict[str, Any],
    dry_run: bool,
    limit: int | None,
    max_rate: float | None,
    nice: int | None,
    failures: bool,
    retry_failed: bool,
    as_json: bool,
) -> None:
    """Embed all texts under PATHS that have no vector of the model yet.

    The job can be stopped at any time, by Ctrl-C, kill or a power cut, and goes on where it was: what is
    done is never done again. A text that the model refuses is noted and does not stop the rest. A model
    other than the one in use becomes that when it is complete.

    Progress goes to stderr: a bar on a terminal, JSON lines elsewhere. Exit codes: 0 complete,
    4 partial (some texts failed or --limit was reached), 1 failed, 130 interrupted.
    """
    from searchsvc.batch import Limits
    from searchsvc.service import Service

    service = Service(make_config(context, paths, **model))
    if failures:
        _print_failures(service, as_json=as_json)
    if nice:
        from searchsvc.priority import lower_process

        lower_process(nice)
    with progress_bar() as progress:
        service.index(progress=progress)
        if dry_run:
            _print_estimate(service, as_json=as_json)
            return
        limits = Limits(texts=limit, per_second=max_rate or 0.0, retry_failed=retry_failed)
        report = service.embed(progress=progress, limits=limits)
    print_json({**asdict(report), "state": report.state}) if as_json else click.echo(
        _summary(service, report)
    )
    sys.exit(EXIT_PARTIAL if report.state == "partial" else 0)


@click.group(invoke_without_command=True, short_help="Vectors of several models, side by side.")
@ROOTS
@JSON
@click.pass_context
@command
def profiles(context: click.Context, roots: tuple[Path, ...], as_json: bool) -> None:
    """List the profiles of an index: model, coverage, size, and which one searches go by (marked *).

    A profile is a model with all that changes its vectors: provider, version of the weights, dimension,
    prefixes. Vectors of two profiles are never mixed.
    """
    from searchsvc.profiles import as_plain, list_profiles
    from searchsvc.service import Service

    context.obj["roots"] = roots
    if context.invoked_subcommand:
        return
    rows = list_profiles(Service(make_config(context, roots)))
    if as_json:
        print_json(as_plain(rows))
        return
    for row in rows:
        failed = f", {row.failed} failed" if row.failed else ""
        maker = f"provider {row.provider}" + (f" (runtime {row.runtime})" if row.runtime else "")
        click.echo(
            f"{'*' if row.in_use else ' '} {row.name}  {row.embedded} of {row.wanted} sections{failed}, "
            f"{row.dimension} dimensions, {row.bytes / 1e6:.1f} MB, {maker}, root {row.root}, "
            f"{row.identity}"
        )
    if not rows:
        click.echo("no vectors yet: run `searchsvc index` or `searchsvc embed`")


@profiles.command()
@click.argument("name")
@ROOTS
@click.pass_context
@command
def use(context: click.Context, name: str, roots: tuple[Path, ...]) -> None:
    """Let searches go by the complete profile NAME (a model name, or an identity)."""
    from searchsvc.profiles import use_profile
    from searchsvc.service import Service

    identity = use_profile(Service(make_config(context, roots or context.obj["roots"])), name)
    click.echo(f"searches go by {identity} now, unless a model is named in the settings")


@profiles.command()
@click.argument("name")
@click.option("--force", is_flag=True, help="Also when it is in use.")
@ROOTS
@click.pass_context
@command
def drop(context: click.Context, name: str, force: bool, roots: tuple[Path, ...]) -> None:
    """Delete the vectors of the profile NAME (a model name, or an identity)."""
    from searchsvc.profiles import drop_profile
    from searchsvc.service import Service

    freed = drop_profile(Service(make_config(context, roots or context.obj["roots"])), name, force=force)
    click.echo(f"{freed / 1e6:.1f} MB freed")


EMBEDDING_COMMANDS = (index, embed, profiles)


def _print_reports(reports: "dict[str, IndexReport]") -> None:
    for root, report in reports.items():
        if report.remark:
            click.echo(report.remark)
        click.echo(
            f"{root}: {report.added} notes added, {report.changed} changed, {report.removed} removed, "
            f"{report.unchanged} unchanged"
        )
        if not report.added + report.changed + report.unchanged:
            click.echo(f"{root}: no Markdown files found (.md, .markdown, .mdx, .qmd)", err=True)
        for problem in report.problems:
            kind = "skipped" if problem.skipped else "note"
            click.echo(f"  {kind}: {problem.path}: {problem.reason}", err=True)


def _summary(service: "Service", report: "EmbedReport") -> str:
    names = [slot.name for slot in service.slots]
    if not names:
        return "no model: search is by words"
    rate = f", {report.embedded / report.seconds:.0f} a second" if report.embedded and report.seconds else ""
    more = [f"{report.shortened} shortened"] if report.shortened else []
    more += [f"{report.failed} failed (see `searchsvc embed --failures`)"] if report.failed else []
    more += [f"{report.left} left"] if report.left else []
    return f"{names[0]}: {report.embedded} texts embedded{rate}; {', '.join(more) or 'complete'}"


def _print_failures(service: "Service", *, as_json: bool) -> None:
    from searchsvc.profiles import as_plain, list_failures

    rows = list_failures(service)
    if as_json:
        print_json(as_plain(rows))
    else:
        for row in rows:
            click.echo(f"{row.profile}: {row.id}: {'in part: ' if row.embedded else ''}{row.reason}")
        click.echo(f"{len(rows)} failures" + ("; try again with --retry-failed" if rows else ""))
    sys.exit(0 if rows else EXIT_NOTHING_FOUND)


def _print_estimate(service: "Service", *, as_json: bool) -> None:
    from searchsvc.estimate import estimate

    found = estimate(service)
    if as_json:
        print_json(found)
        return
    if found is None:
        click.echo("no model: nothing to embed")
        return
    price = f"prices: {{{found.model}: …}}"
    is_free = found.provider in ("local", "sentence-transformers", "ollama", "lmstudio")
    unknown = "nothing" if is_free else f"unknown; put `{price}`, dollars a million tokens, into the settings"
    cost = unknown if found.dollars is None else f"about ${found.dollars:.4f}"
    time = (
        "unknown before a first run; try --limit 200" if found.seconds is None else _duration(found.seconds)
    )
    click.echo(f"{found.model} ({found.provider}): {found.texts} texts, about {found.tokens} tokens")
    click.echo(f"cost: {cost}\ntime: {time}")


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"about {seconds:.0f} seconds"
    return f"about {seconds / 60:.0f} minutes" if seconds < 5400 else f"about {seconds / 3600:.1f} hours"
