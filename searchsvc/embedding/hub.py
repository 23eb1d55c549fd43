"""Downloads from the Hugging Face hub into its usual cache, and only when somebody allowed them."""

import logging
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from searchsvc.embedding.cards import ModelCard, ModelFile, digest
from searchsvc.errors import EmbeddingError

Progress = Callable[[str, int, int], None]
"""Is told the name of a file, the bytes that are here, and the bytes it has (0 when not known)."""

UNUSED = ("onnx/*", "openvino/*", "*.onnx", "*.h5", "*.msgpack", "*.ot", "*.tflite", "*.gguf", ".*")
"""Files of a repository that sentence-transformers has no use for; they can be most of it."""

_HINTS = {
    "GatedRepoError": "its licence has to be accepted at the hub first, and `hf auth login` done",
    "RepositoryNotFoundError": "there is no such repository, or it is private: check the name",
    "RevisionNotFoundError": "the repository has no such revision: check the card",
    "RemoteEntryNotFoundError": "the repository has no such file: check the card",
    "EntryNotFoundError": "the repository has no such file: check the card",
    "LocalEntryNotFoundError": "the hub cannot be reached, or HF_HUB_OFFLINE is set: check the network, the "
    "proxy and HF_ENDPOINT",
}
_ELSE = "check the network, the proxy, HF_ENDPOINT and the space on the disk, and try again"
_NOISY = ("huggingface_hub", "transformers", "sentence_transformers")


def hub_cache(environment: Mapping[str, str]) -> tuple[str, Path]:
    """Return the local cache of the hub, by its own variables: how to call it, and its folder."""
    if environment.get("HF_HUB_CACHE"):
        return "the cache set by HF_HUB_CACHE", Path(environment["HF_HUB_CACHE"]).expanduser()
    if environment.get("HF_HOME"):
        return "the cache set by HF_HOME", Path(environment["HF_HOME"]).expanduser() / "hub"
    return "the cache ~/.cache/huggingface/hub", Path("~/.cache/huggingface/hub").expanduser()


def fetch_files(card: ModelCard, progress: Progress | None = None) -> Path:
    """Download the files of a card and return the folder they lie in.

    Files that are in the cache already are only compared with the card. Each is put in its place when it
    is whole. EmbeddingError when one cannot be had, or is not the one the card describes; that is deleted.
    """
    revision, folder = card.revision, Path()
    for file in card.files:
        path = _right_file(card, file, revision, progress)
        folder = path.parents[file.name.count("/")]
        # All files of one commit, even when the branch moves meanwhile.
        revision = folder.name
    return folder


def find_repository(name: str, *, allow_downloads: bool, is_whole: Callable[[Path], bool]) -> Path | None:
    """Return the folder with a model repository: from the cache, else from the hub when that is allowed.

    None when it is not in the cache, or not whole, and downloads are not allowed. EmbeddingError when the
    hub does not give it.
    """
    found = _snapshot(name, local_files_only=True)
    if found is not None and is_whole(found):
        return found
    return _snapshot(name, local_files_only=False) if allow_downloads else None


@contextmanager
def quiet() -> Iterator[None]:
    """Keep the libraries' remarks off the terminal; errors still come through."""
    loggers = [logging.getLogger(name) for name in _NOISY]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _right_file(card: ModelCard, file: ModelFile, revision: str, progress: Progress | None) -> Path:
    from huggingface_hub import try_to_load_from_cache

    cache = hub_cache(os.environ)[1]
    was_here = isinstance(try_to_load_from_cache(card.hub, file.name, cache, revision), str)
    # What lay in the cache and is wrong may have been damaged here: it is had anew, once.
    for again in (False, True) if was_here else (False,):
        path = _download(card, file, revision, progress, again)
        found = digest(card, path)
        if not file.sha256 or found == file.sha256:
            return path
        _delete(path, cache)
    raise EmbeddingError(
        f"{file.name} of {card.hub} has SHA-256 {found[:12]}…, the card of model {card.id!r} expects "
        f"{file.sha256[:12]}…: what was downloaded has been deleted. The hub has another version, or "
        "somebody changed it on the way; check `revision` and `sha256` of the card, and HF_ENDPOINT"
    )


def _download(
    card: ModelCard, file: ModelFile, revision: str, progress: Progress | None, again: bool
) -> Path:
    from huggingface_hub import hf_hub_download

    with quiet(), _faults(f"{file.name} of {card.hub}"):
        return Path(
            hf_hub_download(
                card.hub,
                file.name,
                revision=revision,
                cache_dir=hub_cache(os.environ)[1],
                endpoint=os.environ.get("HF_ENDPOINT") or None,
                force_download=again,
                tqdm_class=_bar(file.name, progress),
            )
        )


def _snapshot(name: str, *, local_files_only: bool) -> Path | None:
    from huggingface_hub import snapshot_download

    def get() -> Path:
        return Path(
            snapshot_download(
                name,
                cache_dir=hub_cache(os.environ)[1],
                endpoint=os.environ.get("HF_ENDPOINT") or None,
                local_files_only=local_files_only,
                ignore_patterns=list(UNUSED),
                tqdm_class=None if sys.stderr.isatty() else _bar(name, None),
            )
        )

    if local_files_only:
        try:
            return get()
        except (OSError, ValueError):  # not there, not whole, or not the name of a repository
            return None
    with quiet(), _faults(name):
        return get()


@contextmanager
def _faults(what: str) -> Iterator[None]:
    """Turn whatever goes wrong with a download into one error; an address may hold a key and is left out."""
    try:
        yield
    except Exception as error:  # of httpx, httpx2 or requests, by the version of huggingface_hub
        name = type(error).__name__
        raise EmbeddingError(f"{what} cannot be downloaded ({name}): {_HINTS.get(name, _ELSE)}") from error


def _bar(name: str, progress: Progress | None) -> Any:
    """Return the class of a bar that tells ``progress``; without that, on a terminal, the hub's own."""
    bar: Any = import_module("huggingface_hub.utils").tqdm
    if progress is None and sys.stderr.isatty():
        return bar

    class Told(bar):  # type: ignore[misc]
        """Draws nothing."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            self.whole, self.here = kwargs.get("total") or 0, kwargs.get("initial") or 0
            super().__init__(*args, **{**kwargs, "disable": True})

        def update(self, n: float | None = 1) -> None:
            """Take note of so many bytes more."""
            self.here += int(n or 0)
            if progress is not None:
                progress(name, self.here, max(self.whole, self.here))

    return Told


def _delete(path: Path, cache: Path) -> None:
    """Delete a file of the cache and what it is a link to, if that lies in the cache too."""
    content = path.resolve()
    path.unlink(missing_ok=True)
    if content.is_relative_to(cache.resolve()):
        content.unlink(missing_ok=True)
