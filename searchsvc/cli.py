"""The command line: parse arguments, ask the service, print."""

import sys
from copy import copy
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from searchsvc import __version__
from searchsvc.embedding_commands import EMBEDDING_COMMANDS
from searchsvc.import_commands import IMPORT_COMMANDS
from searchsvc.model_commands import models
from searchsvc.reading_commands import READING_COMMANDS
from searchsvc.terminal import (
    ALLOW_DOMAIN,
    ALLOW_PATH,
    EXIT_NOTHING_FOUND,
    JSON,
    PATHS,
    ROOTS,
    command,
    make_config,
    model_options,
    print_json,
    print_reply,
    ready_service,
)
from searchsvc.upkeep_commands import UPKEEP_COMMANDS


def _read_properties(
    context: click.Context, option: click.Parameter, given: tuple[str, ...]
) -> dict[str, list[str]]:
    """Return the values that each property must have."""
    wanted: dict[str, list[str]] = {}
    for pair in given:
        key, equals, value = pair.partition("=")
        if not key.strip() or not equals:
            raise click.BadParameter(f"{pair!r}, expected KEY=VALUE", context, option)
        wanted.setdefault(key.strip(), []).append(value.strip())
    return wanted


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="searchsvc")
@click.option("--config", "config_file", type=click.Path(path_type=Path), help="Config file (YAML).")
@click.option("--data-dir", type=click.Path(path_type=Path), help="Where indexes are kept.")
@click.pass_context
def main(context: click.Context, config_file: Path | None, data_dir: Path | None) -> None:
    """Search Markdown notes by words, meaning and links, section by section, offline.

    Two commands are the whole set-up: `searchsvc serve ./notes` for an AI agent over MCP, or
    `searchsvc search "a question" --root ./notes` on the command line. Indexing is automatic.

    Exit codes: 0 done, 1 failed, 2 wrong usage or settings, 3 nothing found, 4 done in part,
    130 interrupted.
    """
    context.obj = {"config_file": config_file, "data_dir": data_dir}


@main.command(short_help="Find sections that answer a question.")
@click.argument("query")
@ROOTS
@click.option("--path", default="", help="Only this note, section (its id), folder or glob.")
@click.option("--tag", "tags", multiple=True, help="Only notes with this tag; repeatable.")
@click.option(
    "--property",
    "properties",
    multiple=True,
    metavar="KEY=VALUE",
    callback=_read_properties,
    help="Only notes with this value in their front matter; repeatable, all must hold.",
)
@click.option("--since", default="", help="Only files changed since a date, or an age such as 30d.")
@click.option("--query", "queries", multiple=True, help="The question in other words, too; repeatable.")
@click.option("--profile", default="", help="Search by the vectors of this profile, by its name or identity.")
@click.option(
    "--mode", default="hybrid", type=click.Choice(["hybrid", "lexical", "vector"]), show_default=True
)
@click.option("--top", "top_k", default=10, type=click.IntRange(1, 200), show_default=True, help="How many.")
@click.option(
    "--budget", type=click.IntRange(min=100), help="Print the reply an agent gets, within so many tokens."
)
@click.option(
    "--detail", type=click.Choice(["auto", "list", "snippet", "full"]), help="With --budget: how much text."
)
@click.option("--cursor", default="", help="With --budget: go on where an earlier reply stopped.")
@click.option("--explain", is_flag=True, help="Show rank and score by channel and term.")
@click.option("--no-refresh", is_flag=True, help="Do not look for changed notes first.")
@model_options
@JSON
@click.pass_context
@command
def search(context: click.Context, /, query: str, no_refresh: bool, as_json: bool, **options: Any) -> None:
    """Find the sections that best answer QUERY, a question or a few words."""
    budget, detail, cursor = options.pop("budget"), options.pop("detail"), options.pop("cursor")
    if budget is None and (cursor or detail):
        raise click.UsageError("--cursor and --detail go with --budget")
    service = ready_service(context, options.pop("roots"), options.pop("model"), refresh=not no_refresh)
    if budget is not None:
        answer = service.semantic_search(
            query, max_tokens=budget, detail=detail or "auto", cursor=cursor, **options
        )
        print_reply(answer, as_json=as_json)
        sys.exit(0 if answer.shown and answer.ranking.relevant else EXIT_NOTHING_FOUND)
    ranking = service.search(query, **options)
    if as_json:
        print_json(ranking)
    else:
        from searchsvc.printing import print_ranking

        print_ranking(service, ranking, explain=options["explain"])
    sys.exit(0 if ranking.hits and ranking.relevant else EXIT_NOTHING_FOUND)


@main.command(short_help="Find which notes are about something.")
@click.argument("query")
@ROOTS
@click.option("--path", default="", help="Only this note, folder or glob.")
@click.option(
    "--budget", default=4000, type=click.IntRange(min=100), show_default=True, help="Tokens at most."
)
@model_options
@JSON
@click.pass_context
@command
def find(
    context: click.Context,
    query: str,
    roots: tuple[Path, ...],
    path: str,
    budget: int,
    model: dict[str, Any],
    as_json: bool,
) -> None:
    """Say which notes are about QUERY and where in them; the way into a large vault."""
    service = ready_service(context, roots, model)
    answer = service.md_find(query, path=path, max_tokens=budget)
    print_reply(answer, as_json=as_json)
    sys.exit(0 if answer.shown else EXIT_NOTHING_FOUND)


@main.command(short_help="Serve notes to an AI agent over MCP.")
@PATHS
@click.option("--toolsets", default="", help="Comma-separated sets of tools; default: find,read,vault.")
@ALLOW_PATH
@ALLOW_DOMAIN
@model_options
@click.pass_context
@command
def serve(
    context: click.Context,
    paths: tuple[Path, ...],
    toolsets: str,
    allow_paths: tuple[Path, ...],
    allow_domains: tuple[str, ...],
    model: dict[str, Any],
) -> None:
    """Serve the notes under PATHS to an AI agent: MCP over stdin and stdout.

    What is missing from the index or has changed is indexed in the background, now and later.
    """
    from searchsvc.serving.server import run

    settings = make_config(
        context, paths, **model, allow_paths=allow_paths or None, allow_domains=allow_domains or None
    )
    run(settings, toolsets)


@main.command(short_help="Tell the state of the index.")
@ROOTS
@model_options
@JSON
@click.pass_context
@command
def status(context: click.Context, roots: tuple[Path, ...], model: dict[str, Any], as_json: bool) -> None:
    """Tell the state of the index: notes, sections, vectors, problems."""
    from searchsvc.service import Service

    state = Service(make_config(context, roots, **model)).status()
    if as_json:
        print_json(state)
    else:
        from searchsvc.answering.status import render_status

        click.echo(render_status(state))


for other_command in (*EMBEDDING_COMMANDS, *IMPORT_COMMANDS, models, *UPKEEP_COMMANDS, *READING_COMMANDS):
    main.add_command(other_command)


@main.group()
def config() -> None:
    """Look at settings."""


@config.command()
@ROOTS
@JSON
@click.pass_context
@command
def show(context: click.Context, roots: tuple[Path, ...], as_json: bool) -> None:
    """Print every setting with its value, and where the config file is looked for."""
    from searchsvc.config import data_dir, default_config_file

    settings = asdict(make_config(context, roots)) | {"data_dir": data_dir(make_config(context, roots))}
    if as_json:
        print_json(settings)
        return
    import yaml

    file = context.obj["config_file"] or default_config_file()
    plain = {name: _for_yaml(value) for name, value in settings.items()}
    click.echo(f"# settings in force; put those to change into {file}")
    click.echo(yaml.safe_dump(plain, sort_keys=False, allow_unicode=True).rstrip())


def _for_yaml(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_for_yaml(item) for item in value]
    if isinstance(value, dict):
        return {key: _for_yaml(item) for key, item in value.items() if key != "is_named"}
    return str(value) if isinstance(value, Path) else value


def _spread(group: click.Group, options: list[click.Option]) -> None:
    """Let options of the whole program stand behind a command, too, where most people put them."""
    for below in group.commands.values():
        taken = {name for parameter in below.params for name in parameter.opts}
        for option in options:
            if taken.isdisjoint(option.opts):
                other = copy(option)
                other.hidden = True
                if option.expose_value:
                    other.expose_value, other.callback = False, _keep
                below.params.append(other)
        if isinstance(below, click.Group):
            _spread(below, options)


def _keep(context: click.Context, option: click.Parameter, value: Any) -> None:
    if value is not None:
        context.obj[option.name] = value


_spread(main, [option for option in main.params if isinstance(option, click.Option)])
