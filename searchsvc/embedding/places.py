"""Where the files of a model are looked for, and what to do when they are nowhere."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from searchsvc.embedding.cards import ModelCard, data_folder, verify_files
from searchsvc.embedding.hub import Progress, fetch_files, hub_cache
from searchsvc.errors import EmbeddingError

WEIGHTS = "searchsvc.weights"
"""Group of entry points by which a package brings files for a card: its id, and the package they lie in."""

BUNDLED = "the models that came with the package"
"""What the first place is called."""


@dataclass(frozen=True, slots=True)
class Place:
    """A place where the files of a model may lie."""

    name: str
    """For people; without a path that the user did not name."""
    folder: Path
    missing: tuple[str, ...]
    """Files of the model that are not there."""


def find_files(
    card: ModelCard,
    explicit: Path | None = None,
    *,
    allow_downloads: bool = False,
    progress: Progress | None = None,
) -> Path:
    """Return the folder that holds all files of the model; their content is not looked at.

    A folder given by the caller is the only place tried: a wrong path must not be covered up by another
    copy. Else the files that came with searchsvc, installed packages and the local Hugging Face cache are
    tried, and at last the hub, when downloads are allowed. EmbeddingError names each place tried and the
    ways out.
    """
    tried: list[str] = []
    for place in places(card, explicit):
        if not place.missing:
            return place.folder
        tried.append(f"  {place.name}: no {', '.join(place.missing)}")
    if card.hub and explicit is None:
        if allow_downloads:
            return fetch_files(card, progress)
        tried.append(f"  {card.hub} at the hub: not asked, downloads are not allowed")
    raise EmbeddingError(
        "\n".join([f"the files of model {card.id!r} were not found. Tried", *tried, _ways_out(card)])
    )


def fetch(card: ModelCard, progress: Progress | None = None) -> Path:
    """Return the folder with the files of the model, verified; download them when they are not here.

    Files that are here and are known to be the right ones cost no traffic. EmbeddingError when they
    cannot be had.
    """
    here = first_place(card)
    if here is not None and (not card.hub or all(file.sha256 for file in card.files)):
        try:
            verify_files(card, here.folder)
            return here.folder
        except EmbeddingError:
            if not card.hub:
                raise
    folder = fetch_files(card, progress) if card.hub else find_files(card)
    verify_files(card, folder)
    return folder


def first_place(card: ModelCard) -> Place | None:
    """Return the place from which the model would be loaded; none when its files are not here."""
    return next((place for place in places(card) if not place.missing), None)


def places(card: ModelCard, explicit: Path | None = None) -> Iterator[Place]:
    """Yield the places where files of the model are looked for, in order; nothing is downloaded."""
    for name, folder in _folders(card, explicit):
        missing = tuple(file.name for file in card.files if not (folder / file.name).is_file())
        yield Place(name, folder, missing)


def package_folder(package: str) -> Path | None:
    """Return the folder ``name/folder`` of an installed package; it is found, not imported."""
    name, _, inner = package.partition("/")
    try:
        spec = find_spec(name)
    except (ImportError, ValueError):
        return None
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations))) / inner


def _folders(card: ModelCard, explicit: Path | None) -> Iterator[tuple[str, Path]]:
    if explicit is not None:
        yield f"the folder given, {explicit}", explicit.expanduser()
        return
    # The encoder's package loads its own files, wherever else there might be others.
    if card.runtime != "use":
        if card.folder is None:
            yield BUNDLED, data_folder() / card.id
        else:
            yield "the folder of the card", card.folder
    yield from _packages(card)
    if card.hub:
        yield from _cached(card)


def _packages(card: ModelCard) -> Iterator[tuple[str, Path]]:
    names = [card.package] if card.package else []
    if card.runtime != "use":
        from importlib.metadata import entry_points  # slow to import, and seldom used

        entries = sorted(entry_points(group=WEIGHTS, name=card.id), key=lambda entry: entry.value)
        names += [entry.value.replace(".", "/") for entry in entries]
    for name in names:
        folder = package_folder(name)
        top = name.partition("/")[0]
        if folder is None:
            yield f"the package {top}, which is not installed", Path(os.devnull)
        else:
            yield f"the package {top}", folder


def _cached(card: ModelCard) -> Iterator[tuple[str, Path]]:
    place, cache = hub_cache(os.environ)
    repository = cache / f"models--{card.hub.replace('/', '--')}"
    folders = _snapshots(repository, card.revision)
    yield from ((f"snapshot {folder.name[:8]} of {card.hub} in {place}", folder) for folder in folders)
    if not folders:
        yield f"{place}, which has no snapshot of {card.hub}", repository


def _snapshots(repository: Path, revision: str) -> list[Path]:
    """List the snapshots in a cached repository, the one that ``revision`` names first."""
    reference = repository / "refs" / revision
    wanted = reference.read_text(encoding="utf-8").strip() if reference.is_file() else revision
    folders = sorted(folder for folder in (repository / "snapshots").glob("*") if folder.is_dir())
    return sorted(folders, key=lambda folder: folder.name != wanted)


def _ways_out(card: ModelCard) -> str:
    ways = []
    if card.hub:
        ways.append(f"run `{card.fetch_command}` once")
    if card.install:
        ways.append(f"run `{card.install}`")
    if card.runtime != "use":
        files = " ".join(file.name for file in card.files)
        ways.append(f"give the folder that holds {files} as the model path (model_path)")
    ways.append("choose a model that ships with the package (all-minilm-l6-v2-int8, minilm-static-256)")
    return "Ways out: " + "; or ".join(ways) + "."
