"""A folder of .npy files, written whole or not at all, read as memory maps."""

import errno
import os
import shutil
import threading
import uuid
import weakref
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from searchsvc.errors import IndexFault
from searchsvc.index.faults import REBUILD, Damage, write_fault
from searchsvc.index.layout import STAGING_PREFIX

Array = NDArray[Any]

_NOT_OF_THE_FILE = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
_HEADERS = threading.Lock()
"""One thread at a time reads headers: numpy has Python's parser read them, and that of Python 3.11 keeps one
count of its depth for all threads, which goes wrong when they overlap ("AST constructor recursion depth
mismatch")."""
_MAX_EMPTY_BYTES = 512
"""Files up to this size are read at once: an array without elements cannot be mapped."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """An array that is made piece by piece while it is written, to bound memory."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    pieces: Iterable[Array]
    """Consecutive rows; together of that shape."""

    def save(self, stream: IO[bytes]) -> None:
        """Write the array as numpy does."""
        descr = np.lib.format.dtype_to_descr(self.dtype)
        header = {"descr": descr, "fortran_order": False, "shape": self.shape}
        np.lib.format.write_array_header_1_0(stream, header)
        for piece in self.pieces:
            stream.write(np.ascontiguousarray(piece, self.dtype).tobytes())


def write_arrays(parent: Path, arrays: Mapping[str, Array | Blocks]) -> str:
    """Write arrays into a new folder under ``parent`` and return its name.

    The folder appears by one rename after every byte is on disk. A failure (a full disk, say) leaves
    nothing behind but a staging folder that the next writer sweeps.
    """
    name = uuid.uuid4().hex[:16]
    staging = parent / f"{STAGING_PREFIX}{name}"
    try:
        parent.mkdir(parents=True, exist_ok=True)
        staging.mkdir()
        for key, array in arrays.items():
            with (staging / f"{key}.npy").open("wb") as stream:
                if isinstance(array, Blocks):
                    array.save(stream)
                else:
                    np.save(stream, np.ascontiguousarray(array), allow_pickle=False)
                stream.flush()
                os.fsync(stream.fileno())
        _sync_folder(staging)
        staging.rename(parent / name)
        _sync_folder(parent)
    except OSError as error:
        shutil.rmtree(staging, ignore_errors=True)
        raise write_fault(error) from error
    return name


def read_array(folder: Path, key: str) -> Array:
    """Return one array as a read-only memory map (an empty array when it has no elements)."""
    path = folder / f"{key}.npy"
    try:
        mapped: Any = "r" if path.stat().st_size > _MAX_EMPTY_BYTES else None
        with _HEADERS:
            return np.asarray(np.load(path, mmap_mode=mapped, allow_pickle=False))
    except (OSError, ValueError, EOFError) as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> IndexFault:
    if isinstance(error, OSError) and error.errno in _NOT_OF_THE_FILE:
        return IndexFault(f"index cannot be opened: {error.strerror}; close other programs")
    return Damage(f"index file {path.name} is missing or damaged; {REBUILD}")


def is_complete(folder: Path) -> bool:
    """Tell whether a folder of arrays was written to its end."""
    return folder.is_dir() and not folder.name.startswith(STAGING_PREFIX)


class RowFile:
    """Rows of a matrix on disk, a few at a time.

    A memory map would do, but each touch maps sixteen pages around it, and a server that answers for a
    while ends up holding the whole matrix.
    """

    def __init__(self, folder: Path, key: str, rows: Array) -> None:
        """Open the file of the matrix ``rows``, which ``read_array`` returned."""
        self._rows = rows
        if not hasattr(os, "pread") or not len(rows):
            return
        path = folder / f"{key}.npy"
        try:
            self._descriptor = os.open(path, os.O_RDONLY)
        except OSError as error:  # Swept since ``rows`` were opened, or too many files are open.
            raise _unreadable(path, error) from error
        weakref.finalize(self, os.close, self._descriptor)
        self._offset = os.fstat(self._descriptor).st_size - rows.nbytes
        self._row_bytes = rows.itemsize * rows.shape[1]

    def slice(self, start: int, end: int) -> Array:
        """Return consecutive rows."""
        if not hasattr(os, "pread"):
            return np.asarray(self._rows[start:end])
        size = self._row_bytes * (end - start)
        piece = os.pread(self._descriptor, size, self._offset + self._row_bytes * start)
        return np.frombuffer(piece, self._rows.dtype).reshape(end - start, self._rows.shape[1])

    def take(self, numbers: NDArray[np.int64]) -> Array:
        """Return the rows with these numbers, in their order."""
        pieces = b"".join(map(self.row, numbers.tolist()))
        return np.frombuffer(pieces, self._rows.dtype).reshape(len(numbers), self._rows.shape[1])

    def row(self, number: int) -> bytes:
        """Return the bytes of one row."""
        if not hasattr(os, "pread"):
            return bytes(self._rows[number].tobytes())
        return os.pread(self._descriptor, self._row_bytes, self._offset + number * self._row_bytes)


def sweep(parent: Path, keep: set[str]) -> None:
    """Delete folders that no generation names; what another process still holds open is left."""
    if not parent.is_dir():
        return
    for folder in parent.iterdir():
        if folder.name not in keep and folder.is_dir():
            shutil.rmtree(folder, ignore_errors=True)


def _sync_folder(folder: Path) -> None:
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
