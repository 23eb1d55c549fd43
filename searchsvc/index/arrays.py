"""A folder of .npy files, written whole or not at all, read as memory maps."""

import os
import shutil
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchsvc.errors import IndexFault
from searchsvc.index.layout import STAGING_PREFIX

Array = NDArray[Any]


def write_arrays(parent: Path, arrays: Mapping[str, Array]) -> str:
    """Write arrays into a new folder under ``parent`` and return its name.

    The folder appears by one rename after every byte is on disk. A failure (a full disk, say) leaves
    nothing behind but a staging folder that the next writer sweeps.
    """
    parent.mkdir(parents=True, exist_ok=True)
    name = uuid.uuid4().hex[:16]
    staging = parent / f"{STAGING_PREFIX}{name}"
    staging.mkdir()
    try:
        for key, array in arrays.items():
            with (staging / f"{key}.npy").open("wb") as stream:
                np.save(stream, np.ascontiguousarray(array), allow_pickle=False)
                stream.flush()
                os.fsync(stream.fileno())
        staging.rename(parent / name)
        _sync_folder(parent)
    except OSError as error:
        shutil.rmtree(staging, ignore_errors=True)
        raise IndexFault(
            f"index cannot be written: {error.strerror}; free space or check permissions, then index again. "
            "The last complete state stays searchable."
        ) from error
    return name


def read_array(folder: Path, key: str) -> Array:
    """Return one array as a read-only memory map (an empty array when it has no elements)."""
    path = folder / f"{key}.npy"
    try:
        # A plain view: indexing the memmap subclass costs several times as much.
        array: Array = np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except ValueError:
        array = np.load(path, allow_pickle=False)
    except OSError as error:
        raise IndexFault(
            f"index file {path.name} is missing or damaged; run `searchsvc index --rebuild`"
        ) from error
    return array


def sweep(parent: Path, keep: set[str]) -> None:
    """Delete folders that no generation names; what another process still holds open is left."""
    if not parent.is_dir():
        return
    for folder in parent.iterdir():
        if folder.name not in keep:
            shutil.rmtree(folder, ignore_errors=True)


def _sync_folder(folder: Path) -> None:
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
