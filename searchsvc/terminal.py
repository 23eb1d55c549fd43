"""What all commands share: options, errors as exit codes, settings, progress, JSON."""

import base64
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from searchsvc.config import Config, Root, load, make_root
from searchsvc.errors import (
    ConfigError,
    EmbeddingError,
    IndexFault,
    NotFound,
    QueryError,
    SearchError,
)
from searchsvc.wording import error_on_terminal, reply_on_terminal

if TYPE_CHECKING:
    from searchsvc.printing import ProgressBar

QUICKLY_EMBEDDED = 100
"""Missing texts that a search embeds before it answers; more are left to `searchsvc index` or a server."""

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_NOTHING_FOUND = 3
EXIT_PARTIAL = 4
EXIT_INTERRUPTED = 130

_EXITS: tuple[tuple[type[SearchError], int], ...] = (
    (NotFound, EXIT_NOTHING_FOUND),
    (QueryError, EXIT_USAGE),
    (ConfigError, EXIT_USAGE),
    (SearchError, EXIT_FAILED),
)
"""What a command ends with by the kind of error; the first that fits counts."""

_F = TypeVar("_F", bound=Callable[..., Any])

PATHS = click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
ROOTS = click.option(
    "--root", "roots", multiple=True, type=click.Path(path_type=Path), help="Folder to search; repeatable. "
    "Without any: the config file's, or the current folder."
)  # fmt: skip
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
ALLOW_PATH = click.option(
    "--allow-path", "allow_paths", multiple=True, type=click.Path(path_type=Path),
    help="Folder beside the roots whose files may be read; repeatable.",
)  # fmt: skip
ALLOW_DOMAIN = click.option(
    "--allow-domain", "allow_domains", multiple=True,
    help="Host that may be fetched from, with all names below it, or 'all'; repeatable. Default: none.",
)  # fmt: skip


def model_options(function: _F) -> _F:
    """Add the options that choose a model; they arrive together as ``model``, settings by name."""

    @wraps(function)
    def run(*args: Any, provider: Any, model: Any, base_url: Any, dimensions: Any, **kwargs: Any) -> Any:
        chosen = {"provider": provider, "model": model, "base_url": base_url, "dimensions": dimensions}
        return function(*args, model=chosen, **kwargs)

    options = (
        click.option("--provider", help="What runs the model: local, sentence-transformers, ollama, "
                     "lmstudio, openai, or an installed one."),
        click.option("--model", help="Embedding model as its provider names it, or 'none' for search by "
                     "words only. Default: the one the index uses."),
        click.option("--base-url", help="Address of the server that runs the model."),
        click.option("--dimensions", type=click.IntRange(min=1), help="Cut vectors to this length, where the "
                     "model allows it."),
    )  # fmt: skip
    for option in reversed(options):
        run = option(run)
    return run  # type: ignore[return-value]


def command(function: _F) -> _F:
    """Turn errors into one line on stderr and the right exit code."""

    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except SearchError as error:
            click.echo(f"error: {error_on_terminal(str(error), _roots_asked())}", err=True)
            sys.exit(next(code for kind, code in _EXITS if isinstance(error, kind)))
        except KeyboardInterrupt:
            click.echo("interrupted; what was committed is kept, run the command again to go on", err=True)
            sys.exit(EXIT_INTERRUPTED)

    return run  # type: ignore[return-value]


def make_config(
    context: click.Context, paths: tuple[Path, ...], *, name: str | None = None, **settings: Any
) -> Config:
    """Return the settings in force; those that are none are left to the config file and environment."""
    roots: tuple[Root, ...] | None = tuple(make_root(path, name) for path in paths) or None
    arguments = {"roots": roots, **settings, "data_dir": context.obj["data_dir"]}
    return load(arguments, config_file=context.obj["config_file"])


def ready_service(
    context: click.Context, roots: tuple[Path, ...], model: dict[str, Any], *, refresh: bool = True
) -> Any:
    """Return a service whose index is up to date."""
    from searchsvc.service import Service

    service = Service(make_config(context, roots, **model))
    if refresh or not service.is_indexed:
        try:
            with progress_bar() as progress:
                service.index(progress=progress)
                bring_vectors_up(service, progress)
        except IndexFault as error:
            if not service.is_indexed:
                raise
            click.echo(f"searching the index as it is: {error}", err=True)
    return service


def bring_vectors_up(service: Any, progress: "ProgressBar") -> None:
    """Make the vectors that are missing when they are few; without a model, words have to do."""
    from searchsvc.batch import Limits

    try:
        service.embed(progress=progress, limits=Limits(at_most=QUICKLY_EMBEDDED, wait=False))
    except EmbeddingError as error:
        click.echo(f"vectors are as they were: {error}", err=True)


@contextmanager
def progress_bar() -> Iterator["ProgressBar"]:
    """Give a progress callback; a bar with ETA appears on a terminal once the work takes a while."""
    from searchsvc.printing import ProgressBar

    bar = ProgressBar()
    try:
        yield bar
    finally:
        bar.close()


def print_reply(reply: Any, *, as_json: bool) -> None:
    """Print the reply of a tool: whole as JSON, or its text with the advice in commands."""
    print_json(reply) if as_json else click.echo(reply_on_terminal(reply.text, _roots_asked()))


def _roots_asked() -> tuple[str, ...]:
    """Return the roots named on the command line, which a command that is advised has to repeat."""
    context = click.get_current_context(silent=True)
    return tuple(map(str, context.params.get("roots") or ())) if context else ()


def print_json(value: Any) -> None:
    """Print a value as JSON; bytes are encoded in base64."""
    click.echo(json.dumps(value, default=_plain, ensure_ascii=False, indent=2))


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    return str(value)
