"""Any model that sentence-transformers runs, by its name at the hub or its folder; on a GPU if there is."""

import hashlib
import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchsvc.embedding.base import Matrix, ModelChoice, Outcome, Partial, Passage, Profile
from searchsvc.embedding.families import find_family
from searchsvc.embedding.hub import find_repository, quiet
from searchsvc.embedding.pieces import guess_tokens
from searchsvc.embedding.vectors import unit
from searchsvc.embedding.windows import Offsets, TextWindower, plain
from searchsvc.errors import EmbeddingError

MAX_WINDOWS = 64
"""Windows a passage may have; text beyond the last one has no vector (the lexical index has it all)."""
WINDOW_TOKENS = 256
"""Tokens of a window unless asked for otherwise: one vector blurs over more."""
MIN_ROOM = 16
"""Tokens of text a window must have room for."""
BATCH = 32
"""Windows the model is given at once."""
AHEAD = 4
"""Batches that are gathered, so that windows of one length can be put together."""

DEFAULT_OWNER = "sentence-transformers"
"""Whose a model is whose name has no owner, as the library has it."""
GUESSED_SPECIAL = 4
"""Special tokens around a text, where a tokenizer does not tell."""

WEIGHTS = ("*.safetensors", "*.bin", "*.pt")
"""Files of weights, the kind that is preferred first; where a folder has it, the others are copies."""
CONFIGS = (
    "modules.json", "config.json", "tokenizer.json", "tokenizer_config.json", "vocab.txt", "vocab.json",
    "merges.txt", "*.model", "sentence_*_config.json", "special_tokens_map.json", "added_tokens.json",
)  # fmt: skip
"""Files beside the weights that change vectors. Not the one with prompts, which are in the profile."""


class SentenceEmbedder:
    """Vectors by a model of sentence-transformers. Implements Embedder."""

    def __init__(
        self, model: Any, profile: Profile, windower: TextWindower, batch_texts: int = BATCH
    ) -> None:
        """Take a loaded model; it is given ``batch_texts`` windows at once."""
        self.profile = profile
        self._model = model
        self._windower = windower
        self._batch = batch_texts
        self._turn, self._running = threading.Lock(), threading.Lock()

    def encode_query(self, text: str) -> NDArray[np.float32]:
        """Return the unit vector of a question, cut to one window; zeros for a blank one."""
        text = self._windower.query(text)
        if not text:
            return np.zeros(self.profile.dimension, dtype=np.float32)
        row = self._run(self._model.encode_query, [text], self.profile.query_prefix)[0]
        return unit(row, self.profile.dimension)

    def encode_passages(self, passages: Iterable[Passage]) -> Iterator[Outcome]:
        """Yield the unit vectors of the windows of each passage; at most ``MAX_WINDOWS`` rows each.

        Windows of some passages ahead are embedded together, those of one length in one batch. A passage
        for which the model gives what is no vector yields a ``Partial`` with the rest of its windows.
        """
        waiting = iter(passages)
        while ahead := self._gather(waiting):
            yield from self._embed(ahead)

    def _gather(self, waiting: Iterator[Passage]) -> list[list[str]]:
        ahead: list[list[str]] = []
        most = AHEAD * self._batch
        count = 0
        for passage in islice(waiting, most):
            ahead.append(self._windower.passage(passage))
            count += len(ahead[-1])
            if count >= most:
                break
        return ahead

    def _embed(self, passages: list[list[str]]) -> Iterator[Outcome]:
        texts = [text for windows in passages for text in windows]
        rows = np.empty((len(texts), self.profile.dimension), dtype=np.float32)
        order = sorted(range(len(texts)), key=lambda at: len(texts[at]), reverse=True)
        for start in range(0, len(order), self._batch):
            batch = order[start : start + self._batch]
            rows[batch] = self._run(
                self._model.encode_document, [texts[at] for at in batch], self.profile.passage_prefix
            )
        first = 0
        for windows in passages:
            yield _outcome(rows[first : first + len(windows)])
            first += len(windows)

    def _run(self, encode: Callable[..., Any], texts: list[str], prefix: str) -> Matrix:
        # Who waits for the model holds the turn, so a question waits for one batch of a long job at most.
        with self._turn:
            self._running.acquire()
        try:
            rows = encode(texts, prompt=prefix, batch_size=len(texts), show_progress_bar=False)
        except (RuntimeError, ValueError, IndexError) as error:  # of torch, also out of memory
            raise EmbeddingError(
                f"model {self.profile.name} failed on {len(texts)} texts ({type(error).__name__}); make "
                "batch_texts or max_tokens smaller, or choose another model"
            ) from error
        finally:
            self._running.release()
        found = np.asarray(rows, dtype=np.float32)
        if found.shape != (len(texts), self.profile.dimension):
            raise EmbeddingError(
                f"model {self.profile.name} gave vectors of shape {found.shape}, expected "
                f"{(len(texts), self.profile.dimension)}; choose another model"
            )
        return found


def load(choice: ModelChoice) -> SentenceEmbedder:
    """Load the model of that name or folder; how many threads compute is left to torch.

    No code that comes with a model is run. EmbeddingError when sentence-transformers or the model is
    missing, the model cannot be run, or it cannot make vectors of the length asked for.
    """
    if choice.base_url:
        raise EmbeddingError(
            "provider 'sentence-transformers' takes no base_url; leave it out, or choose a provider that "
            "asks a server"
        )
    try:
        library = import_module("sentence_transformers")
    except ImportError as error:
        raise EmbeddingError(
            "provider 'sentence-transformers' needs a package that is not installed: run "
            "pip install 'searchsvc[st]', or choose another provider"
        ) from error
    folder = find_folder(choice)
    model = _load_model(library, folder, choice.model)
    profile = _make_profile(model, choice, folder)
    model.truncate_dim = choice.dimensions or None
    prefixes = (profile.query_prefix, profile.passage_prefix)
    tokenizer = _tokenizer(model)
    _read_special_as_text(tokenizer, prefixes)
    windower = _make_windower(tokenizer, profile.max_tokens, prefixes)
    return SentenceEmbedder(model, profile, windower, choice.batch_texts or BATCH)


def find_folder(choice: ModelChoice) -> Path:
    """Return the folder with the files of the model, whole: as given, from the cache, or from the hub.

    EmbeddingError lists what was tried and the ways out.
    """
    given = choice.model_path or Path(choice.model)
    folder = given.expanduser()
    if choice.model_path is not None or folder.is_dir() or _is_path(choice.model):
        if not _is_whole(folder):
            found = "has no model" if folder.is_dir() else "is no folder"
            raise EmbeddingError(
                f"{given} {found}; expected a folder with modules.json or config.json and all files of "
                "weights, as sentence-transformers saves a model"
            )
        return folder
    name = choice.model if "/" in choice.model else f"{DEFAULT_OWNER}/{choice.model}"
    found_here = find_repository(name, allow_downloads=choice.allow_downloads, is_whole=_is_whole)
    if found_here is None:
        raise EmbeddingError(
            f"model {choice.model!r} was not found. Tried\n  the folder {choice.model}: there is none\n"
            f"  {name} in the local Hugging Face cache: not there, or not whole\n"
            f"  {name} at the hub: not asked, downloads are not allowed\n"
            f"Ways out: allow downloads (allow_downloads); or run `hf download {name}` once; or give the "
            "folder with the model (model_path)."
        )
    if not _is_whole(found_here):
        raise EmbeddingError(
            f"{name} at the hub is no model that sentence-transformers runs: it has no weights of "
            f"{', '.join(WEIGHTS)} with a config.json; choose another model"
        )
    return found_here


def revision_of(folder: Path) -> str:
    """Return a SHA-256, in hex, over the weights of a model and the settings that change its vectors."""
    total = hashlib.sha256()
    for file in sorted(_weights(folder) + _configs(folder), key=lambda file: file.relative_to(folder).parts):
        with file.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        total.update(f"{file.relative_to(folder).as_posix()}\0{digest}\n".encode())
    return total.hexdigest()


def _is_path(name: str) -> bool:
    return name.startswith((".", "~")) or Path(name).is_absolute() or "\\" in name or name.count("/") > 1


def _modules(folder: Path) -> dict[Path, str]:
    """Return the folders of the parts of a model, with what each part is."""
    try:
        modules = json.loads((folder / "modules.json").read_text(encoding="utf-8"))
        found = [(str(module.get("path", "")), str(module.get("type", ""))) for module in modules]
    except (OSError, ValueError, AttributeError):
        return {}
    return {folder / path: kind for path, kind in found if path and ".." not in path}


def _folders(folder: Path) -> list[Path]:
    """List the folder and those of its modules; exports for other runtimes beside them are not of it."""
    return [folder, *(path for path in _modules(folder) if path.is_dir() and path != folder)]


def _weights(folder: Path) -> list[Path]:
    return [
        file
        for part in _folders(folder)
        for file in next(filter(None, (sorted(part.glob(kind)) for kind in WEIGHTS)), [])
    ]


def _configs(folder: Path) -> list[Path]:
    found = {file for part in _folders(folder) for pattern in CONFIGS for file in part.glob(pattern)}
    return sorted(found)


def _is_whole(folder: Path) -> bool:
    """Tell whether a folder has a model with all its parts and weights, as far as it names them."""
    if not any((folder / name).is_file() for name in ("modules.json", "config.json")):
        return False
    for path, kind in _modules(folder).items():
        if kind.endswith((".Pooling", ".Dense")) and not (path / "config.json").is_file():
            return False
    for index in folder.glob("*.index.json"):
        try:
            shards = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
        except (OSError, ValueError, KeyError, AttributeError):
            return False
        if not all((folder / str(shard)).is_file() for shard in shards):
            return False
    return bool(_weights(folder))


def _load_model(library: Any, folder: Path, name: str) -> Any:
    try:
        with quiet(), _no_bars():
            return library.SentenceTransformer(str(folder), trust_remote_code=False, local_files_only=True)
    except Exception as error:  # of many libraries, and of the model's files
        reason = str(error).replace(str(folder), "the model").strip().partition("\n")[0][:200]
        if "trust_remote_code" in str(error):
            reason = "it needs code that comes with it, which is never run here"
        raise EmbeddingError(
            f"model {name!r} cannot be loaded by sentence-transformers ({type(error).__name__}: {reason}); "
            "check its files, upgrade sentence-transformers, or choose another model"
        ) from error


@contextmanager
def _no_bars() -> Iterator[None]:
    """Draw no bar while weights are read: a server has a protocol on its terminal."""
    bars = import_module("transformers.utils.logging")
    were_on = getattr(bars, "is_progress_bar_enabled", lambda: True)()
    bars.disable_progress_bar()
    try:
        yield
    finally:
        if were_on:
            bars.enable_progress_bar()


def _make_profile(model: Any, choice: ModelChoice, folder: Path) -> Profile:
    name = choice.model
    native = _dimension(model)
    if choice.dimensions > native:
        raise EmbeddingError(
            f"model {name!r} makes vectors of {native} dimensions, {choice.dimensions} were asked for; ask "
            f"for at most {native}"
        )
    family = find_family(name)
    prompts = {key: text for key, text in (getattr(model, "prompts", None) or {}).items() if text}
    query = prompts.get("query", family.query_prefix if not prompts else "")
    known = [prompts[key] for key in ("document", "passage", "corpus") if key in prompts]
    passage = known[0] if known else (family.passage_prefix if not prompts else "")
    longest = getattr(model, "max_seq_length", None)
    wanted = choice.max_tokens or WINDOW_TOKENS
    return Profile(
        # The name is part of names on disk.
        name=re.sub(r"[^\w.-]+", "-", Path(name.rstrip("/\\")).name, flags=re.ASCII).strip("-.") or "model",
        provider="sentence-transformers",
        revision=revision_of(folder),
        dimension=choice.dimensions or native,
        # Some models say infinity.
        max_tokens=int(min(longest, wanted)) if longest else wanted,
        query_prefix=query if choice.query_prefix is None else choice.query_prefix,
        passage_prefix=passage if choice.passage_prefix is None else choice.passage_prefix,
        pooling=_pooling(model),
        languages=_languages(folder) or family.languages,
    )


def _dimension(model: Any) -> int:
    measure = getattr(model, "get_embedding_dimension", None) or model.get_sentence_embedding_dimension
    told = measure()
    return int(told) if told else int(model.encode(["a"], show_progress_bar=False).shape[1])


def _pooling(model: Any) -> str:
    """Return how the model pools, by the module that does; ``model`` where none tells."""
    for module in model:
        mode = getattr(module, "pooling_mode", None)
        if isinstance(mode, str):
            return mode
        if isinstance(mode, list | tuple):
            return "+".join(map(str, mode))
        tell = getattr(module, "get_pooling_mode_str", None)
        if callable(tell):
            return str(tell())
    return "model"


def _languages(folder: Path) -> tuple[str, ...]:
    """Return the languages that the model's README declares; none when it does not."""
    import yaml

    try:
        text = (folder / "README.md").read_text(encoding="utf-8")
        head = re.match(r"---\n(.*?)\n---", text, re.DOTALL)
        declared = yaml.safe_load(head[1])["language"] if head else None
    except (OSError, UnicodeError, yaml.YAMLError, KeyError, TypeError):
        return ()
    codes = [declared] if isinstance(declared, str) else declared if isinstance(declared, list) else []
    if "multilingual" in codes:
        return ("*",)
    return tuple(dict.fromkeys(code for code in codes if isinstance(code, str)))


def _tokenizer(model: Any) -> Any:
    try:
        return model.tokenizer
    except AttributeError:  # models whose first part has none, or several
        return None


def _read_special_as_text(tokenizer: Any, prefixes: tuple[str, str]) -> None:
    """Let a note that quotes ``[SEP]`` mean the characters, unless the model's own prompts mean the token."""
    special = getattr(tokenizer, "all_special_tokens", None) or []
    is_prompted = any(token in prefix for token in special for prefix in prefixes)
    if hasattr(tokenizer, "split_special_tokens") and not is_prompted:
        tokenizer.split_special_tokens = True


def _make_windower(tokenizer: Any, max_tokens: int, prefixes: tuple[str, str]) -> TextWindower:
    """Return what cuts texts by the model's tokenizer, or by guessed tokens where it does not tell."""
    fast_type = import_module("tokenizers").Tokenizer
    fast = getattr(tokenizer, "backend_tokenizer", tokenizer)
    offsets: Callable[[str], Offsets] = guess_tokens
    special = GUESSED_SPECIAL
    if isinstance(fast, fast_type):
        # A copy: the model's own is set to pad and to cut while it runs.
        copy = plain(fast_type.from_str(fast.to_str()))
        special = copy.num_special_tokens_to_add(False)

        def told(text: str) -> Sequence[tuple[int, int]]:
            found: Offsets = copy.encode(text, add_special_tokens=False).offsets
            return found

        offsets = told
    room = max_tokens - special - max(len(offsets(prefix)) for prefix in prefixes)
    if room < MIN_ROOM:
        raise EmbeddingError(
            f"windows of {max_tokens} tokens leave {room} for text beside the prefix, expected at least "
            f"{MIN_ROOM}: make max_tokens larger or the prefix shorter"
        )
    return TextWindower(offsets, room, MAX_WINDOWS)


def _outcome(rows: Matrix) -> Outcome:
    """Return the rows brought to length 1; those that cannot be are left out and told."""
    norms = np.linalg.norm(rows.astype(np.float64), axis=1, keepdims=True)
    good = (np.isfinite(norms) & (norms > 0))[:, 0]
    unit_rows = np.asarray(rows[good] / norms[good], dtype=np.float32)
    if good.all():
        return unit_rows
    return Partial(
        unit_rows,
        f"the model gave no finite vector above 0 for {int((~good).sum())} of {len(rows)} windows; they were "
        "left out",
    )
