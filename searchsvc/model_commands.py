"""Commands about the models that run here: list, show, fetch, verify."""

import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from searchsvc.errors import EmbeddingError
from searchsvc.terminal import EXIT_FAILED, JSON, command, print_json, progress_bar

if TYPE_CHECKING:
    from searchsvc.embedding.cards import ModelCard

_MEGABYTE = 1_000_000
OK, DAMAGED, ABSENT = "ok", "damaged", "absent"

_CARD = click.argument("model", metavar="ID")


@click.group(short_help="Look at the models that run here, and fetch them.")
def models() -> None:
    """Look at the models that run on this machine (provider local), and fetch them.

    ID is a model of `searchsvc models list`, or the path of a card of your own, ending in .yaml.
    Nothing is downloaded but by `fetch`, or when the setting allow_downloads is on.
    """


@models.command("list", short_help="List the models there are.")
@JSON
@command
def list_models(as_json: bool) -> None:
    """List the models there are: dimension, languages, size, and where their files were found."""
    from searchsvc.embedding.cards import list_cards

    rows = [_row(card) for card in list_cards()]
    if as_json:
        print_json(rows)
        return
    width = max((len(row["id"]) for row in rows), default=0)
    click.echo(f"{'model':<{width}}  dimensions  {'languages':<12}  {'size':>9}  files")
    for row in rows:
        languages = _languages(row["languages"])
        click.echo(
            f"{row['id']:<{width}}  {row['dimension']:>10}  {languages:<12}  "
            f"{_size(row['bytes']):>9}  {row['found'] or 'not here'}"
        )
        click.echo(f"{'':<{width}}  {row['title']}")


@models.command(short_help="Show all that is known of a model.")
@_CARD
@JSON
@command
def show(model: str, as_json: bool) -> None:
    """Show all that is known of the model ID: its card, scores, and where its files were looked for."""
    from searchsvc.embedding.cards import load_card
    from searchsvc.embedding.places import places

    card = load_card(model)
    tried = list(places(card))
    if as_json:
        looked = [{"place": place.name, "missing": place.missing} for place in tried]
        print_json({**asdict(card), **_row(card), "looked_for": looked})
        return
    plain = asdict(card)
    for name in ("files", "scores", "notes", "folder"):
        plain.pop(name)
    for name, value in plain.items():
        shown = ", ".join(value) if isinstance(value, tuple) else value
        if shown != "":
            click.echo(f"{name + ':':<15} {shown!r}" if "prefix" in name else f"{name + ':':<15} {shown}")
    click.echo("files:")
    for file in card.files:
        click.echo(f"  {file.name}  {_size(file.bytes)}  SHA-256 {file.sha256 or 'not known, any is taken'}")
    if card.scores:
        click.echo("scores:")
    for score in card.scores:
        click.echo(f"  {score.metric} {score.value:g}  {score.benchmark} ({score.source})")
    click.echo("looked for:")
    for place in tried:
        found = f"no {', '.join(place.missing)}" if place.missing else "found"
        click.echo(f"  {place.name}: {found}")
    if card.notes:
        click.echo(f"notes: {card.notes}")


@models.command(short_help="Download a model, once.")
@_CARD
@JSON
@command
def fetch(model: str, as_json: bool) -> None:
    """Download the files of the model ID into the local Hugging Face cache, and verify them.

    What is here already, and right, is not downloaded again. A file that is not the one the model's card
    describes is deleted and refused. HF_ENDPOINT names another hub, HF_HUB_CACHE another folder.
    """
    from searchsvc.embedding import places
    from searchsvc.embedding.cards import load_card

    card = load_card(model)
    with progress_bar() as bar:

        def tell(name: str, here: int, whole: int) -> None:
            bar(f"{name} (MB)", here // _MEGABYTE, max(whole // _MEGABYTE, 1))

        folder = places.fetch(card, tell)
    reply = {"id": card.id, "state": OK, "folder": str(folder)}
    print_json(reply) if as_json else click.echo(f"{card.id}: complete and verified, in {folder}")


@models.command(short_help="Compare the files that are here with their cards.")
@click.argument("models", nargs=-1, metavar="[ID]...")
@JSON
@command
def verify(models: tuple[str, ...], as_json: bool) -> None:
    """Compare the files that are here with what the cards say of them; of all models without any ID.

    Each model is ok, damaged or absent. Exit code 1 when one is damaged.
    """
    from searchsvc.embedding.cards import list_cards, load_card

    cards = [load_card(model) for model in models] if models else list_cards()
    states = []
    for state in _verify(cards):
        states.append(state)
        if not as_json:
            click.echo(f"{state['id']}: {state['state']}, {state['detail']}")
    if as_json:
        print_json(states)
    sys.exit(EXIT_FAILED if any(state["state"] == DAMAGED for state in states) else 0)


def _verify(cards: "tuple[ModelCard, ...] | list[ModelCard]") -> Iterator[dict[str, str]]:
    from searchsvc.embedding.cards import verify_files
    from searchsvc.embedding.places import first_place

    for card in cards:
        place = first_place(card)
        if place is None:
            yield {"id": card.id, "state": ABSENT, "detail": f"see `searchsvc models show {card.id}`"}
            continue
        try:
            verify_files(card, place.folder)
        except EmbeddingError as error:
            yield {"id": card.id, "state": DAMAGED, "detail": f"{place.name}: {error}"}
            continue
        unknown = [file.name for file in card.files if not file.sha256]
        remark = f" (its card has no SHA-256 of {', '.join(unknown)})" if unknown else ""
        yield {"id": card.id, "state": OK, "detail": f"{place.name}{remark}"}


def _row(card: "ModelCard") -> dict[str, Any]:
    from searchsvc.embedding.places import BUNDLED, first_place

    place = first_place(card)
    size = sum(file.bytes for file in card.files)
    if place is not None:
        size = sum((place.folder / file.name).stat().st_size for file in card.files)
    return {
        "id": card.id,
        "title": card.title,
        "dimension": card.dimension,
        "languages": card.languages,
        "bytes": size,
        "found": ("bundled" if place.name == BUNDLED else place.name) if place else None,
    }


def _languages(codes: tuple[str, ...]) -> str:
    if codes == ("*",):
        return "many"
    return ", ".join(codes) if len(codes) <= 3 else f"{len(codes)} languages"


def _size(size: int) -> str:
    return f"{size / _MEGABYTE:.1f} MB" if size else "? MB"
