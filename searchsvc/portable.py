"""Vectors in one file, to be made on one machine and searched on another.

The file is a numpy .npz: ``keys`` (hash of what was embedded, uint64), ``counts`` (rows of each), ``rows``
(float32 unit vectors), ``probes`` (vectors of foreign questions, to calibrate with), and ``manifest``, JSON
in UTF-8: the profile, how many there are, and the SHA-256 of keys, counts and rows. It holds no text.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from searchsvc.embedding.base import Embedder, Profile
from searchsvc.embedding.cards import RUNTIMES
from searchsvc.embedding.context import PROBES
from searchsvc.errors import EmbeddingError, IndexFault, NotFound, QueryError
from searchsvc.index.archive import Archive, write_archive
from searchsvc.index.arrays import Array, Blocks
from searchsvc.index.profiles import SAME, ProfileCard
from searchsvc.index.vectors import Part, open_part
from searchsvc.models import profile_of
from searchsvc.service import Service
from searchsvc.vault import Vault

if TYPE_CHECKING:
    from searchsvc.profiles import ProfileRow

FORMAT = 1
_BLOCK = 4096
_MAX_MANIFEST = 1_000_000
_MAX_PROBES = 8_000_000
_MAX_WINDOWS = 1 << 16
"""Rows that a text may have; more than any model makes of one."""
_HELD_ROWS = 1 << 14
"""Rows that are held before they are stored."""
_UNIT = 1e-3
"""How far the length of a vector may be from 1."""
_SAFE = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}")
"""Identities, which are names of folders."""
_SERVERS = ("sentence-transformers", "ollama", "lmstudio", "openai")
"""Providers whose profiles bear their name."""
_CHOICE: dict[str, type] = {
    "model": str, "provider": str, "query_prefix": str, "passage_prefix": str, "dimensions": int,
    "max_tokens": int,
}  # fmt: skip
"""What is taken of a choice. An address from elsewhere would decide where questions are sent."""


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
    probes = _probes(service, card)
    manifest = {
        "format": FORMAT,
        "identity": card.identity,
        "facts": dict(card.facts),
        "choice": _portable_choice(card.facts, card.choice),
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
        card, keys, counts = _checked(archive)
        cards = {vault.root.path: _kept(vault, card) for vault in service.vaults}
        here = set(_live_keys(service).tolist())
        added: set[int] = set()
        missing = 0
        for vault in service.vaults:
            mine = _import_into(vault, cards[vault.root.path], _matrices(archive, keys, counts))
            if mine:
                _calibrate(vault, card, archive)
            added |= mine
            with vault.reader.pinned() as (frame, _):
                missing += len(frame.missing(card.identity, failed_too=True))
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
        wanted = set(frame.table["key"][frame.missing(card.identity, failed_too=True)].tolist())
    made: dict[int, NDArray[np.float32]] = {}
    added: set[int] = set()
    held = 0
    for key, matrix in matrices:
        if key in wanted:
            # A copy: a view would keep the whole block that it was read in.
            made[key] = matrix.copy()
            added.add(key)
            held += max(1, len(matrix))
        if held >= _HELD_ROWS:
            _add(vault, card, made)
            held = 0
    _add(vault, card, made)
    return added


def _kept(vault: Vault, card: ProfileCard) -> ProfileCard:
    """Return the card that the profile has in a root already, since that knows more, or the new one."""
    kept = vault.reader.card(card.identity)
    if kept is None:
        return card
    cosine = kept.recognises(card.probe)
    if not cosine >= SAME:
        raise EmbeddingError(
            f"profile {card.identity} of the file is not the one in root {vault.root.name}: cosine "
            f"{cosine:.4f} for the same text, expected at least {SAME}; leave the file, or drop what is here "
            f"with `searchsvc profiles drop {card.identity}`"
        )
    return kept


def _card(service: Service, name: str) -> ProfileCard:
    from searchsvc.profiles import list_profiles

    rows = [row for row in list_profiles(service) if _is_meant(row, name)]
    identities = list(dict.fromkeys(row.identity for row in rows))
    if len(identities) != 1:
        kind = QueryError if identities else NotFound
        known = ", ".join(card.identity for card in service.models.cards()) or "none"
        raise kind(f"{len(identities)} profiles are called {name or 'in use'!r}; name one of: {known}")
    for vault in service.vaults:
        if card := vault.reader.card(identities[0]):
            return card
    raise IndexFault(
        f"profile {identities[0]} has lost its file profile.json, which says what made its vectors; drop it "
        f"with `searchsvc profiles drop {identities[0]}`, and embed again"
    )


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


def _portable_choice(facts: Mapping[str, Any], choice: Mapping[str, Any]) -> dict[str, Any]:
    """Return what of a choice means the same on another machine."""
    kept = {key: choice[key] for key in _CHOICE if key in choice}
    if kept.get("provider") == "local":
        # Somebody's own model card lies at a path of this machine.
        kept["model"] = facts["name"]
    return kept


def _probes(service: Service, card: ProfileCard) -> NDArray[np.float32] | None:
    """Return the vectors of foreign questions; none when the model that made the profile cannot be asked."""
    slot = service.models.named(card.identity)
    embedder: Embedder | None = slot.get(wait=True) if slot else None
    if embedder is None or embedder.profile.identity != card.identity:
        return None
    try:
        return np.stack([embedder.encode_query(probe) for probe in PROBES])
    except EmbeddingError:
        return None


@contextmanager
def _opened(file: Path) -> Iterator[Archive]:
    try:
        with Archive(file) as archive:
            yield archive
    except OSError as error:
        raise EmbeddingError(f"{file} cannot be read: {error.strerror}; check the path") from error
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise EmbeddingError(
            f"{file.name} is not an export of vectors, or is damaged ({error}); make it again with "
            "`searchsvc vectors export`"
        ) from error


def _checked(archive: Archive) -> tuple[ProfileCard, NDArray[np.uint64], NDArray[np.int64]]:
    """Return the card in the manifest, keys and counts, after checking the whole file."""
    manifest = json.loads(archive.read("manifest", _MAX_MANIFEST).tobytes())
    if manifest["format"] != FORMAT:
        raise EmbeddingError(
            f"vectors of format {str(manifest['format'])[:20]}, expected {FORMAT}; use that version"
        )
    card = _checked_card(manifest)
    keys, counts = archive.read("keys"), archive.read("counts")
    if keys.dtype != np.uint64 or counts.dtype != np.int64 or keys.ndim != 1 or keys.shape != counts.shape:
        raise ValueError("keys and counts do not fit together")
    if ((counts < 0) | (counts > _MAX_WINDOWS)).any():
        raise ValueError(f"a text has less than 0 or more than {_MAX_WINDOWS} vectors")
    if (keys == 0).any() or len(np.unique(keys)) < len(keys):
        raise ValueError("a key is 0 or there twice")
    with archive.rows("rows") as (shape, rows):
        if shape != (int(counts.sum()), len(card.probe)):
            raise ValueError(f"rows of shape {shape}, expected {(int(counts.sum()), len(card.probe))}")
        found = _digest(keys, counts, map(_sound, rows))
    if found != manifest["sha256"]:
        raise ValueError("the checksum is another")
    if (manifest["texts"], manifest["vectors"]) != (len(keys), shape[0]):
        raise ValueError("the manifest counts other vectors than there are")
    _read_probes(archive, len(card.probe))
    return card, keys, counts


def _checked_card(manifest: Mapping[str, Any]) -> ProfileCard:
    """Return the card in a manifest."""
    identity, facts, choice = manifest["identity"], dict(manifest["facts"]), dict(manifest["choice"])
    if set(facts) != {field.name for field in fields(Profile)}:
        raise EmbeddingError(_other_rules(identity, "something else"))
    for field in fields(Profile):
        if type(facts[field.name]) is not (list if field.name == "languages" else field.type):
            raise ValueError(f"{field.name} of the profile is of another type")
    if not all(isinstance(code, str) for code in facts["languages"]):
        raise ValueError("languages of the profile are no text")
    probe = np.array([float(x) for x in manifest["probe"]], np.float32)
    card = ProfileCard(identity, facts, _checked_choice(facts, choice), _sound(probe[None, :])[0])
    profile = profile_of(card)
    if profile.identity != identity:
        raise EmbeddingError(_other_rules(identity, profile.identity))
    if not _SAFE.fullmatch(identity):
        raise ValueError("the identity of the profile is no plain name")
    if profile.dimension != len(probe):
        raise ValueError(f"the probe has {len(probe)} dimensions, the profile {profile.dimension}")
    return card


def _checked_choice(facts: Mapping[str, Any], choice: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is taken of a choice; vectors of one provider must not lead to questions to another."""
    kept = {key: choice[key] for key in _CHOICE if key in choice}
    if any(type(value) is not _CHOICE[key] for key, value in kept.items()):
        raise ValueError("the choice of a model is of another type")
    maker, provider = facts["provider"], kept["provider"]
    is_other = maker in RUNTIMES and provider != "local"
    if is_other or (provider in _SERVERS and not maker.startswith(provider)):
        raise ValueError(f"vectors of {maker} cannot come from provider {provider}")
    return _portable_choice(facts, kept)


def _other_rules(identity: object, ours: str) -> str:
    return (
        f"profile {str(identity)[:200]!a} is called {ours!a} by this version: the vectors were made by other "
        "rules; export them again with the same version of searchsvc"
    )


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
                held = np.concatenate([held, _sound(next(blocks))])
            yield key, held[:count]
            held = held[count:]


def _add(vault: Vault, card: ProfileCard, made: dict[int, NDArray[np.float32]]) -> None:
    if made:
        with vault.writer(repair=False) as writer:
            writer.vectors.add(card, made)
        made.clear()


def _read_probes(archive: Archive, dimension: int) -> NDArray[np.float32] | None:
    """Return the vectors of foreign questions; none when the file has none."""
    if "probes" not in archive:
        return None
    probes = archive.read("probes", _MAX_PROBES)
    if probes.dtype != np.float32 or probes.ndim != 2 or len(probes) < 2 or probes.shape[1] != dimension:
        raise ValueError(f"probes of shape {probes.shape}, expected a few of {dimension} dimensions")
    return _sound(probes)


def _calibrate(vault: Vault, card: ProfileCard, archive: Archive) -> None:
    probes = _read_probes(archive, len(card.probe))
    if probes is not None:
        with vault.writer(repair=False) as writer:
            writer.vectors.calibrate(card.identity, probes)
