"""Files -> outlines and lines, parsed once for each content.

Every read looks at the file as it is now. What is kept in memory is the outline of a file, packed, under a
bound; the text is always read again.
"""

import hashlib
import os
import pickle
import threading
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

from searchsvc.config import Config
from searchsvc.reading.access import Place, read_bytes
from searchsvc.reading.decode import decode
from searchsvc.reading.outline import Outline, outline_of
from searchsvc.reading.walk import signature

_CACHE_BYTES = 48_000_000


@dataclass(frozen=True, slots=True)
class _Packed:
    signature: str
    digest: bytes
    outline: bytes


class ParsedFiles:
    """Outlines of the files that were read; safe to use from several threads."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._lock = threading.Lock()
        self._outlines: OrderedDict[Path, _Packed] = OrderedDict()
        self._size = 0

    def outline(self, place: Place) -> Outline:
        """Return what stands where in a file as it is now; parsed only when its content is new."""
        now = signature_of(place.file)
        with self._lock:
            packed = self._outlines.get(place.file)
            if packed is not None and now and packed.signature == now:
                self._outlines.move_to_end(place.file)
                return _unpacked(packed)
        return self.read(place)[0]

    def read(self, place: Place) -> tuple[Outline, tuple[str, ...]]:
        """Return outline and lines of a file, of one and the same content."""
        before = signature_of(place.file)
        data = read_bytes(place, self._config)
        text = decode(data)
        digest = hashlib.blake2b(data, digest_size=16).digest()
        with self._lock:
            packed = self._outlines.get(place.file)
        is_known = packed is not None and packed.digest == digest
        outline = _unpacked(packed) if packed is not None and is_known else outline_of(place.path, text)
        body = packed.outline if packed is not None and is_known else pickle.dumps(outline, protocol=5)
        with self._lock:
            self._forget(place.file)
            self._outlines[place.file] = _Packed(before, digest, body)
            self._size += len(body)
            while self._size > _CACHE_BYTES:
                self._forget(next(iter(self._outlines)))
        return outline, text.lines

    def _forget(self, file: Path) -> None:
        packed = self._outlines.pop(file, None)
        self._size -= len(packed.outline) if packed else 0


def signature_of(file: Path) -> str:
    """Return what changes whenever a file does; empty for one that is not there."""
    try:
        return signature(os.lstat(file))
    except OSError:
        return ""


def _unpacked(packed: _Packed) -> Outline:
    outline: Outline = pickle.loads(packed.outline)
    return outline
