"""Vectors in one file, to be made on one machine and searched on another.

The file is a numpy .npz: ``keys`` (hash of what was embedded, uint64), ``counts`` (rows of each), ``rows``
(float32 unit vectors), ``probes`` (vectors of foreign questions, to calibrate with), and ``manifest``, JSON
in UTF-8: the profile, how many there are, and the SHA-256 of keys, counts and rows. It holds no text.
"""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from searchsvc.embedding.context import PROBES
from searchsvc.errors import EmbeddingError, NotFound, QueryError
from searchsvc.index.archive import Archive, write_archive
from searchsvc.index.arrays import Array, Blocks
from searchsvc.index.profiles import ProfileCard
from searchsvc.index.vectors import Part, open_part
from searchsvc.models import profile_of
from searchsvc.service import Service
from searchsvc.vault import Vault

if TYPE_CHECKING:
    from searchsvc.profiles import ProfileRow

FORMAT = 1
_BLOCK = 4096
_MAX_MANIFEST = 1_000_000
_UNIT = 1e-3
"""How far the length of a vector may be from 1."""


@dataclass(frozen=True, slots=True)
class Exported:
    """What an export wrote."""

    file: str
    profile: str
    """Identity."""
    texts: int
    vectors: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did."""

    profile: str
    """Identity."""
    texts: int
    """In the file."""
    added: int
    """Texts of the roots that have vectors now and had none before."""
    known: int
    """Texts of the file that had vectors already."""
    unmatched: int
    """Texts of the file that no root has."""
    missing: int
    """Texts of the roots that still lack vectors."""


def export_vectors(service: Service, file: Path, name: str = "", *, overwrite: bool = False) -> Exported:
    """Write the vectors of a profile, the one in use unless named, into one file that appears whole.

    NotFound for a profile that no root has; QueryError when the file exists, unless ``overwrite``.
    """
    if file.exists() and not overwrite:
        raise QueryError(f"{file} exists; choose another name, or add --force to replace it")
    card = _card(service, name)
    parts = [part for vault in service.vaults for part in _parts(vault, card.identity)]
    live = _live_keys(service)
    kept = _first_of_each(parts, live)
    chosen = list(zip(parts, kept, strict=True))
    counts = np.concatenate([np.empty(0, np.int64), *(np.diff(p.bounds)[k] for p, k in chosen)])
    keys = np.concatenate([np.empty(0, np.uint64), *(p.keys[k] for p, k in chosen)])
    digest = _digest(keys, counts, _rows(parts, kept))
    shape = (int(counts.sum()), len(card.probe))
    embedder = service.models.named(card.identity)
    probes = _probes(embedder.get(wait=True)) if embedder else None
    manifest = {
        "format": FORMAT,
        "identity": card.identity,
        "facts": dict(card.facts),
        "choice": {key: value for key, value in card.choice.items() if key != "base_url"},
        "probe": [float(x) for x in card.probe],
        "texts": len(keys),
        "vectors": shape[0],
        "sha256": digest,
    }
    arrays: dict[str, Array | Blocks] = {
        "manifest": np.frombuffer(json.dumps(manifest).encode(), np.uint8),
        "keys": keys,
        "counts": counts,
        "rows": Blocks(shape, np.dtype(np.float32), _rows(parts, kept)),
    }
    write_archive(file, arrays if probes is None else arrays | {"probes": probes})
    return Exported(str(file), card.identity, len(keys), shape[0], file.stat().st_size)


def import_vectors(service: Service, file: Path) -> Imported:
    """Take from a file the vectors of texts that the roots have and that lack them.

    The file is checked whole before anything is written. EmbeddingError for one that is damaged, not an
    export, or of a profile of another version.
    """
    with _opened(file) as archive:
        card = _checked(archive)
        keys, counts = archive.read("keys"), archive.read("counts")
        here = set(_live_keys(service).tolist())
        added: set[int] = set()
        missing = 0
        for vault in service.vaults:
            added |= _import_into(vault, card, _matrices(archive, keys, counts))
            _calibrate(vault, card, archive)
            with vault.reader.pinned() as (frame, _):
                missing += len(frame.missing(card.identity))
        matched = here.intersection(keys.tolist())
        return Imported(
            profile=card.identity,
            texts=len(keys),
            added=len(added),
            known=len(matched - added),
            unmatched=len(keys) - len(matched),
            missing=missing,
        )


def _import_into(
    vault: Vault, card: ProfileCard, matrices: Iterator[tuple[int, NDArray[np.float32]]]
) -> set[int]:
    """Store what a root lacks, and return the hashes of those texts."""
    with vault.reader.pinned() as (frame, _):
        wanted = set(frame.table["key"][frame.missing(card.identity)].tolist())
    made: dict[int, NDArray[np.float32]] = {}
    added: set[int] = set()
    for key, matrix in matrices:
        if key in wanted:
            made[key] = matrix
            added.add(key)
        if len(made) >= _BLOCK:
            _add(vault, card, made)
    _add(vault, card, made)
    return added


def _card(service: Service, name: str) -> ProfileCard:
    from searchsvc.profiles import list_profiles

    rows = [row for row in list_profiles(service) if _is_meant(row, name)]
    identities = list(dict.fromkeys(row.identity for row in rows))
    if len(identities) != 1:
        known = ", ".join(card.identity for card in service.models.cards()) or "none"
        raise NotFound(f"{len(identities)} profiles are called {name or 'in use'!r}; name one of: {known}")
    return next(card for vault in service.vaults if (card := vault.reader.card(identities[0])))


def _is_meant(row: "ProfileRow", name: str) -> bool:
    return name in (row.name, row.identity) if name else row.in_use


def _parts(vault: Vault, identity: str) -> list[Part]:
    with vault.reader.rows() as catalog:
        names = catalog.vector_parts().get(identity, [])
        return [open_part(vault.layout.profile(identity), name) for name in names]


def _live_keys(service: Service) -> NDArray[np.uint64]:
    keys = [np.empty(0, np.uint64)]
    for vault in service.vaults:
        with vault.reader.pinned() as (frame, _):
            keys.append(frame.table["key"][frame.live])
    return np.unique(np.concatenate(keys))


def _first_of_each(parts: list[Part], live: NDArray[np.uint64]) -> list[NDArray[np.bool_]]:
    """Return which passages of each part to write: of live texts, and each once."""
    kept, seen = [], np.empty(0, np.uint64)
    for part in parts:
        firsts = np.zeros(len(part.keys), bool)
        firsts[np.unique(part.keys, return_index=True)[1]] = True
        mine = firsts & np.isin(part.keys, live) & ~np.isin(part.keys, seen)
        seen = np.concatenate([seen, part.keys[mine]])
        kept.append(mine)
    return kept


def _rows(parts: list[Part], kept: list[NDArray[np.bool_]]) -> Iterator[NDArray[np.float32]]:
    for part, keep in zip(parts, kept, strict=True):
        mask = np.repeat(keep, np.diff(part.bounds))
        for start in range(0, len(mask), _BLOCK):
            block = mask[start : start + _BLOCK]
            if block.any():
                yield part.row_file.slice(start, start + len(block))[block]


def _digest(keys: NDArray[np.uint64], counts: NDArray[np.int64], rows: Iterator[NDArray[np.float32]]) -> str:
    digest = hashlib.sha256(keys.astype("<u8").tobytes())
    digest.update(counts.astype("<i8").tobytes())
    for block in rows:
        digest.update(np.ascontiguousarray(block, "<f4").tobytes())
    return digest.hexdigest()


def _probes(embedder: Any) -> NDArray[np.float32] | None:
    return None if embedder is None else np.stack([embedder.encode_query(probe) for probe in PROBES])


@contextmanager
def _opened(file: Path) -> Iterator[Archive]:
    try:
        with Archive(file) as archive:
            yield archive
    except OSError as error:
        raise EmbeddingError(f"{file} cannot be read: {error.strerror}; check the path") from error
    except (ValueError, KeyError, TypeError) as error:
        raise EmbeddingError(
            f"{file.name} is not an export of vectors, or is damaged ({error}); make it again with "
            "`searchsvc vectors export`"
        ) from error


def _checked(archive: Archive) -> ProfileCard:
    """Return the card in the manifest after checking the whole file."""
    manifest = json.loads(archive.read("manifest", _MAX_MANIFEST).tobytes())
    if manifest["format"] != FORMAT:
        raise EmbeddingError(f"vectors of format {manifest['format']}, expected {FORMAT}; use that version")
    card = ProfileCard(
        str(manifest["identity"]),
        dict(manifest["facts"]),
        # An address from elsewhere would decide where questions are sent.
        {key: value for key, value in dict(manifest["choice"]).items() if key != "base_url"},
        np.array(manifest["probe"], np.float32),
    )
    profile = profile_of(card)
    if profile.identity != card.identity:
        raise EmbeddingError(
            f"profile {card.identity} is called {profile.identity} by this version: the vectors were made by "
            "other rules; export them again with the same version of searchsvc"
        )
    keys, counts = archive.read("keys"), archive.read("counts")
    if (
        keys.dtype != np.uint64
        or counts.dtype != np.int64
        or keys.shape != counts.shape
        or (counts < 0).any()
    ):
        raise ValueError("keys and counts do not fit together")
    with archive.rows("rows") as (shape, rows):
        if shape != (int(counts.sum()), profile.dimension):
            raise ValueError(f"rows of shape {shape}, expected {(int(counts.sum()), profile.dimension)}")
        found = _digest(keys, counts, map(_sound, rows))
    if found != manifest["sha256"]:
        raise ValueError("the checksum is another")
    return card


def _sound(block: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(block, axis=1)
    if not np.isfinite(lengths).all() or np.abs(lengths - 1).max(initial=0) > _UNIT:
        raise ValueError("a vector is not of length 1")
    return block


def _matrices(
    archive: Archive, keys: NDArray[np.uint64], counts: NDArray[np.int64]
) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """Yield key and rows of each text."""
    with archive.rows("rows") as (shape, blocks):
        held = np.empty((0, shape[1]), np.float32)
        for key, count in zip(keys.tolist(), counts.tolist(), strict=True):
            while len(held) < count:
                held = np.concatenate([held, next(blocks)])
            yield key, held[:count]
            held = held[count:]


def _add(vault: Vault, card: ProfileCard, made: dict[int, NDArray[np.float32]]) -> None:
    if made:
        with vault.writer(repair=False) as writer:
            writer.vectors.add(card, made)
        made.clear()


def _calibrate(vault: Vault, card: ProfileCard, archive: Archive) -> None:
    if "probes" not in archive:
        return
    probes = archive.read("probes", _MAX_MANIFEST)
    if probes.dtype == np.float32 and probes.ndim == 2 and probes.shape[1] == len(card.probe):
        with vault.writer(repair=False) as writer:
            writer.vectors.calibrate(card.identity, _sound(probes))
