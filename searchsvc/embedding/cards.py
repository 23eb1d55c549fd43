"""Model cards: what a model is, where its files lie, and whether they are the right ones."""

import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from searchsvc.embedding.base import Profile
from searchsvc.errors import EmbeddingError


@dataclass(frozen=True, slots=True)
class ModelFile:
    """One file of a model."""

    name: str
    """Path inside the model's folder, with forward slashes."""
    sha256: str = ""
    """Its SHA-256 in hex, verified at every load; empty when anything found is taken."""
    bytes: int = 0
    """Its size in bytes; 0 when not known."""


@dataclass(frozen=True, slots=True)
class Score:
    """A published measurement of retrieval quality."""

    benchmark: str
    """What was measured, and on which variant of the model."""
    metric: str
    """For example ``nDCG@10``."""
    value: float
    """The number as published."""
    source: str
    """Where it was published."""


@dataclass(frozen=True, slots=True)
class ModelCard:
    """What the file ``<id>.yaml`` says about a model."""

    id: str
    """The name by which users choose the model."""
    title: str
    """The name for people."""
    provider: str
    """What runs it: ``onnx``, ``static`` or ``use``."""
    source: str
    """Repository or package the weights come from."""
    revision: str
    """Version, commit or digest at the source."""
    licence: str
    """SPDX identifier of the licence of the weights."""
    dimension: int
    """Length of a vector."""
    max_tokens: int
    """Tokens of one window, special tokens included."""
    pooling: str
    """How token vectors become one vector."""
    normalise: bool
    """Whether vectors are brought to length 1; true for all models here."""
    files: tuple[ModelFile, ...]
    """The files needed, the weights first."""
    languages: tuple[str, ...]
    """ISO 639-1 codes the model is good at; ``("*",)`` for many."""
    query_prefix: str = ""
    """Put before every question."""
    passage_prefix: str = ""
    """Put before every passage."""
    hub: str = ""
    """Repository in whose local Hugging Face cache the files may lie; empty for none."""
    scores: tuple[Score, ...] = ()
    """Published retrieval scores."""
    notes: str = ""
    """What a user should know before choosing it."""

    def profile(self, revision: str) -> Profile:
        """Return the identity of the vectors made with weights of that SHA-256."""
        return Profile(
            name=self.id,
            provider=self.provider,
            revision=revision,
            dimension=self.dimension,
            max_tokens=self.max_tokens,
            query_prefix=self.query_prefix,
            passage_prefix=self.passage_prefix,
            pooling=self.pooling,
            languages=self.languages,
        )


def load_card(name: str) -> ModelCard:
    """Return the card of that id; EmbeddingError, with the ids there are, when there is none."""
    known = _card_files()
    if name not in known:
        raise EmbeddingError(f"no model named {name!r}; choose one of: {', '.join(known)}")
    return _parse(known[name])


def list_cards() -> tuple[ModelCard, ...]:
    """Return all cards, sorted by id."""
    return tuple(_parse(file) for file in _card_files().values())


def find_files(card: ModelCard, explicit: Path | None = None) -> Path:
    """Return the folder that holds all files of the model; their content is not looked at.

    A folder given by the caller is the only place tried: a wrong path must not be covered up by another
    copy. Otherwise the files that came with the package are tried, then the local Hugging Face cache.
    EmbeddingError names each place tried and the ways out.
    """
    tried: list[str] = []
    for place, folder in _places(card, explicit):
        missing = [file.name for file in card.files if not (folder / file.name).is_file()]
        if not missing:
            return folder
        tried.append(f"  {place}: no {', '.join(missing)}")
    lines = [f"the files of model {card.id!r} were not found. Tried", *tried, _ways_out(card)]
    raise EmbeddingError("\n".join(lines))


def verify_files(card: ModelCard, folder: Path) -> str:
    """Return the SHA-256 of the weights after comparing every file with the card.

    EmbeddingError when a file is not the one the card describes.
    """
    digests = []
    for file in card.files:
        found = _digest(card, folder / file.name)
        if file.sha256 and found != file.sha256:
            raise EmbeddingError(
                f"{file.name} of model {card.id!r} has SHA-256 {found[:12]}…, expected {file.sha256[:12]}…: "
                "it is damaged or another version; put the right file there or reinstall the package"
            )
        digests.append(found)
    return digests[0]


def _digest(card: ModelCard, file: Path) -> str:
    try:
        with file.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise EmbeddingError(
            f"{file.name} of model {card.id!r} cannot be read ({error.strerror}); check that it is there and "
            "its permissions"
        ) from error


def _data_folder() -> Path:
    package = Path(__file__).resolve().parent.parent
    installed = package / "_models"
    return installed if installed.is_dir() else package.parent / "models"


def _card_files() -> dict[str, Path]:
    files = sorted(_data_folder().glob("*.yaml"), key=lambda file: file.stem)
    return {file.stem: file for file in files}


def _parse(file: Path) -> ModelCard:
    import yaml

    try:
        fields: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
        fields["files"] = tuple(ModelFile(**entry) for entry in fields["files"])
        fields["scores"] = tuple(Score(**entry) for entry in fields.get("scores", ()))
        fields["languages"] = tuple(fields["languages"])
        return ModelCard(**fields)
    except (yaml.YAMLError, KeyError, TypeError) as error:
        raise EmbeddingError(
            f"model card {file.name} is damaged ({type(error).__name__}); reinstall the package"
        ) from error


def _places(card: ModelCard, explicit: Path | None) -> Iterator[tuple[str, Path]]:
    if explicit is not None:
        yield f"the folder given, {explicit}", explicit
        return
    yield "the models that came with the package", _data_folder() / card.id
    if card.hub:
        place, cache = _hub_cache(os.environ)
        repository = cache / f"models--{card.hub.replace('/', '--')}"
        snapshots = _snapshots(repository, card.revision)
        yield from ((f"snapshot {folder.name[:8]} of {card.hub} in {place}", folder) for folder in snapshots)
        if not snapshots:
            yield f"{place}, which has no snapshot of {card.hub}", repository


def _hub_cache(environment: Mapping[str, str]) -> tuple[str, Path]:
    if environment.get("HF_HUB_CACHE"):
        return "the cache set by HF_HUB_CACHE", Path(environment["HF_HUB_CACHE"]).expanduser()
    if environment.get("HF_HOME"):
        return "the cache set by HF_HOME", Path(environment["HF_HOME"]).expanduser() / "hub"
    return "the cache ~/.cache/huggingface/hub", Path("~/.cache/huggingface/hub").expanduser()


def _snapshots(repository: Path, revision: str) -> list[Path]:
    """List the snapshots in a cached repository, the one that ``revision`` names first."""
    reference = repository / "refs" / revision
    wanted = reference.read_text(encoding="utf-8").strip() if reference.is_file() else revision
    folders = sorted(folder for folder in (repository / "snapshots").glob("*") if folder.is_dir())
    return sorted(folders, key=lambda folder: folder.name != wanted)


def _ways_out(card: ModelCard) -> str:
    files = " ".join(file.name for file in card.files)
    ways = [f"Give the folder that holds {files} as the model path"]
    if card.hub:
        ways.append(f"or run `hf download {card.hub} {files}` once")
    ways.append("or choose a model that ships with the package (all-minilm-l6-v2-int8, minilm-static-256)")
    return ", ".join(ways) + "."
