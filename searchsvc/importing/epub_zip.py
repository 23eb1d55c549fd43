"""The zip file of an EPUB: members by name, unpacked with everything counted.

Names of members are looked up, never used as paths: nothing is written to disk here.
"""

import posixpath
import zipfile
from io import BytesIO

from searchsvc.errors import ReadingError
from searchsvc.importing.base import Limits

_MAX_MEMBERS = 50_000
_MAX_MEMBER_BYTES = 200_000_000
_MAX_RATIO = 200
_RATIO_FREE_BYTES = 10_000_000
"""Below this much unpacked the ratio does not matter: blank images are small when packed."""
_CHUNK = 1 << 20
_DIRECTORY_ENTRY = b"PK\x01\x02"
_ENCRYPTED = 0x1
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""All that EPUB allows; the others unpack a whole block at once, which cannot be counted in time."""


class Archive:
    """The members of an EPUB, read one at a time."""

    def __init__(self, data: bytes, limits: Limits) -> None:
        """Open the archive; raises ``ReadingError`` when it is none, or asks for too much."""
        self.notices: list[str] = []
        self._left = limits.unpacked_bytes
        self._limit = limits.unpacked_bytes
        # Counted before the directory is read, because reading it makes an object of every entry.
        if data.count(_DIRECTORY_ENTRY) > 2 * _MAX_MEMBERS:
            raise ReadingError(_too_many())
        try:
            self._zip = zipfile.ZipFile(BytesIO(data))
            entries = self._zip.infolist()
        except Exception as error:  # zipfile lets whatever its parts raise on damaged files through
            raise ReadingError(_not_a_zip(data)) from error
        if len(entries) > _MAX_MEMBERS:
            raise ReadingError(_too_many())
        self._members: dict[str, zipfile.ZipInfo] = {}
        self._take(entries)
        self._folded = {name.casefold(): name for name in reversed(self._members)}

    def _take(self, entries: list[zipfile.ZipInfo]) -> None:
        unsafe = doubled = 0
        for entry in entries:
            name = entry.orig_filename.replace("\\", "/")
            if name.endswith("/"):
                continue
            if not _is_safe(name):
                unsafe += 1
                continue
            if entry.flag_bits & _ENCRYPTED:
                raise ReadingError(
                    "the EPUB is a zip file with a password, expected one without; "
                    "unpack it with its password, pack it again without, and import that"
                )
            doubled += name in self._members
            self._members[name] = entry
        if unsafe:
            self.notices.append(f"{unsafe} members of the archive have unsafe names and were left out")
        if doubled:
            self.notices.append(f"{doubled} members of the archive are there twice; the later ones were read")

    def find(self, name: str) -> str:
        """Return the name of a member as the archive spells it; empty when there is none."""
        if name in self._members:
            return name
        return self._folded.get(name.casefold(), "")

    def names(self) -> tuple[str, ...]:
        """Return all names, in the order of the archive."""
        return tuple(self._members)

    def packed_size(self, name: str) -> int:
        """Return how many bytes a member says it has, unpacked."""
        return self._members[name].file_size

    def read(self, name: str, at_most: int = _MAX_MEMBER_BYTES) -> bytes | None:
        """Return the bytes of a member; ``None`` with a notice when it is missing, damaged or too large.

        Raises ``ReadingError`` when the archive as a whole unpacks to more than it may.
        """
        entry = self._members.get(self.find(name))
        if entry is None:
            return None
        if entry.compress_type not in _METHODS:
            self.notices.append(f"{_shown(name)} is packed in a way EPUB does not allow, and was left out")
            return None
        if entry.file_size > at_most:
            self.notices.append(f"{_shown(name)} is larger than {at_most} bytes, and was left out")
            return None
        try:
            return self._unpack(entry, at_most)
        except ReadingError:
            raise
        except Exception:  # damaged data, by zlib, struct or zipfile
            self.notices.append(f"{_shown(name)} is damaged, and was left out")
            return None

    def _unpack(self, entry: zipfile.ZipInfo, at_most: int) -> bytes:
        pieces, size = [], 0
        with self._zip.open(entry) as member:
            while piece := member.read(_CHUNK):
                size += len(piece)
                self._left -= len(piece)
                ratio = size / max(1, entry.compress_size)
                if self._left < 0 or size > at_most or (size > _RATIO_FREE_BYTES and ratio > _MAX_RATIO):
                    raise ReadingError(
                        f"the EPUB unpacks to far more than it should (limit: {self._limit} bytes in all, "
                        f"{_MAX_RATIO} times the packed size); it looks like a zip bomb and is not read"
                    )
                pieces.append(piece)
        return b"".join(pieces)


def _is_safe(name: str) -> bool:
    drive = len(name) > 1 and name[1] == ":"
    return bool(name) and not (name.startswith("/") or drive or "\0" in name or ".." in name.split("/"))


def _shown(name: str) -> str:
    """Return a name that fits a notice."""
    clean = "".join(character for character in posixpath.basename(name) if character.isprintable())
    return clean[:80]


def _too_many() -> str:
    return f"the EPUB has more than {_MAX_MEMBERS} members, which no book has; it is not read"


def _not_a_zip(data: bytes) -> str:
    if data.startswith(b"PK"):
        return "the EPUB is a damaged or incomplete zip file; download or copy it again"
    if data[60:68] in (b"BOOKMOBI", b"TEXtREAd"):
        return "found a Kindle file (MOBI or AZW), expected an EPUB; convert it to EPUB first"
    if data.startswith(b"%PDF"):
        return "found a PDF, expected an EPUB; import it as PDF, with the suffix .pdf"
    return "not an EPUB: found no zip file; expected a book in the EPUB format"
