"""Arrays in one .npz file: written and read block by block, so that none has to fit into memory."""

import os
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Self

import numpy as np
from numpy.typing import NDArray

from searchsvc.errors import IndexFault
from searchsvc.index.arrays import Array, Blocks

_BLOCK = 4096
MAX_SMALL_BYTES = 1_000_000_000
"""Of an array that is read at once."""


def write_archive(file: Path, arrays: Mapping[str, Array | Blocks]) -> None:
    """Write arrays into a file that appears whole or not at all; IndexFault when it cannot be written."""
    staging = file.with_name(file.name + ".tmp")
    try:
        with staging.open("wb") as stream:
            with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
                for name, array in arrays.items():
                    blocks = array if isinstance(array, Blocks) else Blocks(array.shape, array.dtype, [array])
                    with archive.open(_member(name), "w", force_zip64=True) as member:
                        blocks.save(member)
            stream.flush()
            os.fsync(stream.fileno())
        staging.replace(file)
    except OSError as error:
        staging.unlink(missing_ok=True)
        reason = f"{error.strerror}; check the folder, its permissions and the space that is free"
        raise IndexFault(f"{file} cannot be written: {reason}") from error


class Archive:
    """A file of arrays, open for reading; use as a context manager.

    Whatever is wrong with the file raises ``ValueError`` from every method; ``OSError`` when it cannot be
    opened at all. Nothing in it is ever run.
    """

    def __init__(self, file: Path) -> None:
        try:
            self._zip = zipfile.ZipFile(file)
        except zipfile.BadZipFile as error:
            raise ValueError(str(error)) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    def __contains__(self, name: str) -> bool:
        return _member(name) in self._zip.namelist()

    def read(self, name: str, limit: int = MAX_SMALL_BYTES) -> NDArray[Any]:
        """Return one array of at most ``limit`` bytes."""
        with self._open(name) as (shape, dtype, stream):
            size = int(np.prod(shape, dtype=object)) * dtype.itemsize
            if size > limit:
                raise ValueError(f"{name} has {size} bytes, at most {limit} are read")
            return np.frombuffer(_exactly(stream, size), dtype).reshape(shape)

    @contextmanager
    def rows(self, name: str) -> Iterator[tuple[tuple[int, int], Iterator[NDArray[np.float32]]]]:
        """Give the shape of a float32 matrix, and its rows block by block."""
        with self._open(name) as (shape, dtype, stream):
            if len(shape) != 2 or dtype != np.float32:
                raise ValueError(f"{name} is an array of {len(shape)} dimensions of {dtype}")
            yield (shape[0], shape[1]), _blocks(stream, shape[0], shape[1])

    @contextmanager
    def _open(self, name: str) -> Iterator[tuple[tuple[int, ...], np.dtype[Any], IO[bytes]]]:
        try:
            with self._zip.open(_member(name)) as stream:
                if np.lib.format.read_magic(stream) != (1, 0):
                    raise ValueError(f"{name} is in another version of the array format")
                shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(stream)
                if is_fortran or dtype.hasobject:
                    raise ValueError(f"{name} is not a plain array")
                yield shape, dtype, stream
        except (KeyError, zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError) as error:
            raise ValueError(f"{name}: {error}") from error


def _member(name: str) -> str:
    return f"{name}.npy"


def _blocks(stream: IO[bytes], total: int, dimension: int) -> Iterator[NDArray[np.float32]]:
    for start in range(0, total, _BLOCK):
        count = min(_BLOCK, total - start)
        yield np.frombuffer(_exactly(stream, count * dimension * 4), np.float32).reshape(count, dimension)


def _exactly(stream: IO[bytes], size: int) -> bytes:
    data = stream.read(size)
    if len(data) != size:
        raise ValueError(f"cut short: {len(data)} bytes, expected {size}")
    return data
