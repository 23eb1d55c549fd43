"""Arrays in one .npz file: written and read block by block, so that none has to fit into memory.

A file to be read may come from anyone. So it is read by rules of our own, narrower than those of zip and
numpy: members are stored, not compressed, and headers are spelled as numpy writes them. Nothing that a file
says of itself is believed before it has been held against the size of the file.
"""

import math
import os
import re
import struct
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Self

import numpy as np
from numpy.typing import NDArray

from searchsvc.errors import IndexFault
from searchsvc.index.arrays import Array, Blocks

_BLOCK_BYTES = 1 << 23
MAX_SMALL_BYTES = 1_000_000_000
"""Of an array that is read at once."""
_START = b"\x93NUMPY\x01\x00"
_HEADER = re.compile(
    rb"\{'descr': '(<u8|<i8|<f4|\|u1)', 'fortran_order': False, "
    rb"'shape': \((\d{1,15}), ?(\d{1,15})?\), \} *\n"
)
_UNREADABLE = (KeyError, zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, struct.error)


def write_archive(file: Path, arrays: Mapping[str, Array | Blocks]) -> None:
    """Write arrays into a file that appears whole or not at all; IndexFault when it cannot be written."""
    staging = file.with_name(file.name + ".tmp")
    try:
        _write(staging, arrays)
        staging.replace(file)
    except BaseException as error:
        with suppress(OSError):
            staging.unlink(missing_ok=True)
        if isinstance(error, OSError):
            reason = f"{error.strerror}; check the folder, its permissions and the space that is free"
            raise IndexFault(f"{file} cannot be written: {reason}") from error
        raise


def _write(file: Path, arrays: Mapping[str, Array | Blocks]) -> None:
    with file.open("wb") as stream:
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
            for name, array in arrays.items():
                pieces = [array] if isinstance(array, np.ndarray) and array.size else []
                blocks = array if isinstance(array, Blocks) else Blocks(array.shape, array.dtype, pieces)
                with archive.open(_member(name), "w", force_zip64=True) as member:
                    blocks.save(member)
        stream.flush()
        os.fsync(stream.fileno())


class Archive:
    """A file of arrays, open for reading; use as a context manager.

    Whatever is wrong with the file raises ``ValueError`` from every method; ``OSError`` when it cannot be
    opened at all. Nothing in it is ever run, and no more memory is taken than the file is large.
    """

    def __init__(self, file: Path) -> None:
        self._size = file.stat().st_size
        try:
            self._zip = zipfile.ZipFile(file)
        except _UNREADABLE as error:
            raise ValueError(str(error)) from error
        names = self._zip.namelist()
        if len(set(names)) < len(names):
            self._zip.close()
            raise ValueError("it holds two members of one name")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    def __contains__(self, name: str) -> bool:
        return _member(name) in self._zip.namelist()

    def read(self, name: str, limit: int = MAX_SMALL_BYTES) -> NDArray[Any]:
        """Return one array of at most ``limit`` bytes."""
        with self._open(name) as (shape, dtype, stream):
            size = math.prod(shape) * dtype.itemsize
            if size > limit:
                raise ValueError(f"{name} has {size} bytes, at most {limit} are read")
            return np.frombuffer(_exactly(stream, size), dtype).reshape(shape)

    @contextmanager
    def rows(self, name: str) -> Iterator[tuple[tuple[int, int], Iterator[NDArray[np.float32]]]]:
        """Give the shape of a float32 matrix, and its rows block by block."""
        with self._open(name) as (shape, dtype, stream):
            if len(shape) != 2 or dtype != np.float32 or not shape[1]:
                raise ValueError(f"{name} is an array of shape {shape} of {dtype}")
            yield (shape[0], shape[1]), _blocks(stream, shape[0], shape[1])

    @contextmanager
    def _open(self, name: str) -> Iterator[tuple[tuple[int, ...], np.dtype[Any], IO[bytes]]]:
        try:
            info = self._zip.getinfo(_member(name))
            # What is compressed may grow without bounds, and what is stored is no larger than the file.
            if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
                raise ValueError(f"{name} is compressed")
            if info.file_size > self._size:
                raise ValueError(f"{name} would be larger than the file")
            with self._zip.open(info) as stream:
                shape, dtype, start = _read_header(stream)
                if start + math.prod(shape) * dtype.itemsize != info.file_size:
                    raise ValueError(f"{name} of shape {shape} does not have {info.file_size} bytes")
                yield shape, dtype, stream
        except _UNREADABLE as error:
            raise ValueError(f"{name}: {error}") from error


def _member(name: str) -> str:
    return f"{name}.npy"


def _read_header(stream: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any], int]:
    """Return shape and type of an array, and where it begins.

    numpy would have Python's parser read the header, which hostile ones crash in many ways.
    """
    start = _exactly(stream, len(_START) + 2)
    length = int.from_bytes(start[-2:], "little")
    found = _HEADER.fullmatch(_exactly(stream, length)) if start.startswith(_START) else None
    if found is None:
        raise ValueError("not a plain array in version 1.0 of its format")
    shape = tuple(int(size) for size in found.groups()[1:] if size is not None)
    return shape, np.dtype(found[1].decode()), len(start) + length


def _blocks(stream: IO[bytes], total: int, dimension: int) -> Iterator[NDArray[np.float32]]:
    at_once = max(1, _BLOCK_BYTES // (4 * dimension))
    for start in range(0, total, at_once):
        count = min(at_once, total - start)
        yield np.frombuffer(_exactly(stream, count * dimension * 4), np.float32).reshape(count, dimension)


def _exactly(stream: IO[bytes], size: int) -> bytes:
    data = stream.read(size)
    if len(data) != size:
        raise ValueError(f"cut short: {len(data)} bytes, expected {size}")
    return data
