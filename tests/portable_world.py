"""Two machines with the same notes, what one of them exports, and ways to forge that."""

import hashlib
import json

import numpy as np
import pytest

from searchsvc.embedding.base import Profile
from searchsvc.index.archive import write_archive
from searchsvc.portable import export_vectors
from tests.index.index_world import HashEmbedder
from tests.notes import NOTES, open_service, write_notes

TEXTS = 14
"""In the notes that both have."""


@pytest.fixture
def hashed(monkeypatch):
    """Have every model be one that costs nothing; return it."""
    embedder = HashEmbedder()
    monkeypatch.setattr("searchsvc.models.load", lambda choice: embedder)
    monkeypatch.setattr("searchsvc.models.load_card", lambda name: None)
    return embedder


@pytest.fixture
def here(tmp_path, hashed):
    """A machine with the notes and no vectors."""
    return machine(tmp_path / "here")


@pytest.fixture
def exported(tmp_path, hashed):
    """What another machine with the same notes exported."""
    file = tmp_path / "vectors.npz"
    export_vectors(machine(tmp_path / "there", embed=True), file)
    return file


def machine(folder, notes=NOTES, *, embed=False, model="hash"):
    service = open_service(write_notes(folder / "notes", notes), folder / "data", model=model)
    service.index()
    if embed:
        service.embed()
    return service


def arrays(file):
    with np.load(file) as content:
        found = {name: content[name] for name in content.files}
    return found | {"manifest": json.loads(found["manifest"].tobytes())}


def forge(file, *, manifest=None, drop=(), **changes):
    """Write the file again with other arrays and manifest fields, and a checksum that fits."""
    found = arrays(file) | changes
    stated = found["manifest"]
    if isinstance(stated, dict):
        digest = hashlib.sha256(found["keys"].tobytes() + found["counts"].tobytes() + found["rows"].tobytes())
        counted = {"texts": found["keys"].size, "vectors": len(found["rows"])}
        stated = stated | counted | {"sha256": digest.hexdigest()} | (manifest or {})
    raw = stated if isinstance(stated, bytes) else json.dumps(stated).encode()
    found["manifest"] = np.frombuffer(raw, np.uint8)
    write_archive(file, {name: array for name, array in found.items() if name not in drop})
    return file


def refaced(file, choice=None, **facts):
    """Return the manifest fields of a profile with other facts and the identity that goes with them."""
    old = arrays(file)["manifest"]
    new = old["facts"] | facts
    profile = Profile(**{**new, "languages": tuple(new["languages"])})
    return {"facts": new, "identity": profile.identity, "choice": choice or old["choice"]}


def vectors(service, identity):
    """Return the vectors of every section by its key."""
    vault = service.vaults[0]
    with vault.reader.pinned() as (frame, _):
        view = frame.vectors(identity)
        return {int(key): view.of(place) for place, key in enumerate(frame.table["key"]) if key}


def nothing_is_stored(service):
    vault = service.vaults[0]
    return not vault.reader.profiles() and not list(vault.layout.folder.rglob("profile.json"))
