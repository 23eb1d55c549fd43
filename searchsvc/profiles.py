"""Profiles side by side in the indexes of a service: how far each is, which is used, which can go."""

from dataclasses import asdict, dataclass

from searchsvc.embedding.base import ModelChoice
from searchsvc.errors import IndexFault, NotFound, QueryError
from searchsvc.index.ledger import Failure, Ledger
from searchsvc.index.profiles import ProfileCard
from searchsvc.models import known_of
from searchsvc.service import Service
from searchsvc.vault import Vault


@dataclass(frozen=True, slots=True)
class ProfileRow:
    """A profile in the index of one root."""

    root: str
    """Name of the root."""
    name: str
    """Of the model."""
    identity: str
    """The full identity, hashed; vectors of two identities are never compared."""
    provider: str
    """What runs the model, as the settings call it."""
    runtime: str
    """How the provider runs it, such as ``onnx``; empty where the provider says it all."""
    dimension: int
    embedded: int
    """Sections with vectors."""
    wanted: int
    """Sections with text."""
    failed: int
    """Sections with text that the model did not take."""
    bytes: int
    """On disk."""
    in_use: bool
    """Whether searches go by it."""


@dataclass(frozen=True, slots=True)
class FailureRow:
    """A text that could not be embedded, or not whole."""

    root: str
    profile: str
    """Name of the model."""
    id: str
    """Of the section."""
    reason: str
    embedded: bool
    """Whether a part of it has vectors all the same."""


def list_profiles(service: Service) -> list[ProfileRow]:
    """Return the profiles of all roots that have an index."""
    return [row for vault in service.vaults if vault.reader.exists for row in _rows(service, vault)]


def use_profile(service: Service, name: str) -> str:
    """Let searches go by a profile, given by name or identity, in every root; return its identity.

    The switch is one commit a root. NotFound when no root has it, QueryError when it is not complete.
    """
    identity = _identify(service, name)
    rows = {row.root: row for row in list_profiles(service) if row.identity == identity}
    for vault in service.vaults:
        _check_complete(vault, identity, rows.get(vault.root.name), name)
    for vault in service.vaults:
        with vault.writer(repair=False) as writer:
            writer.vectors.use(identity)
    return identity


def drop_profile(service: Service, name: str, *, force: bool = False) -> int:
    """Delete the vectors of a profile in every root; return the bytes that were freed.

    NotFound when no root has it; QueryError for the one in use, unless forced.
    """
    identity = _identify(service, name)
    rows = [row for row in list_profiles(service) if row.identity == identity]
    if any(row.in_use for row in rows) and not force:
        raise QueryError(
            f"profile {name} is in use; switch to another with `searchsvc profiles use`, or add --force"
        )
    for vault in service.vaults:
        if identity in _identities(vault):
            with vault.writer(repair=False) as writer:
                writer.vectors.drop(identity)
    return sum(row.bytes for row in rows)


def list_failures(service: Service, name: str = "") -> list[FailureRow]:
    """Return what could not be embedded, in all profiles or in one given by name or identity."""
    wanted = _identify(service, name) if name else ""
    rows = []
    for vault in service.vaults:
        for identity in _identities(vault):
            if wanted in ("", identity):
                card = vault.reader.card(identity)
                label = card.name if card else identity
                rows += [_failure_row(vault, label, failure) for failure in vault.failures(identity)]
    return rows


def as_plain(rows: "list[ProfileRow] | list[FailureRow]") -> list[dict[str, object]]:
    """Return rows as JSON-safe objects."""
    return [asdict(row) for row in rows]


def _failure_row(vault: Vault, profile: str, failure: Failure) -> FailureRow:
    return FailureRow(vault.root.name, profile, failure.address, failure.reason, failure.embedded)


def _check_complete(vault: Vault, identity: str, row: ProfileRow | None, name: str) -> None:
    """Raise ``QueryError`` unless a root has all vectors of a profile that can be had."""
    with vault.reader.pinned() as (frame, _):
        _, wanted = frame.coverage(identity)
    done = row.embedded + row.failed if row else 0
    if done < wanted:
        where = f"root {vault.root.name} has vectors for {done} of {wanted} sections"
        raise QueryError(
            f"profile {name} is not complete: {where}; run `searchsvc embed` with that model first"
        )


def _identities(vault: Vault) -> list[str]:
    """Return the profiles that have vectors or failures in a root; none without an index."""
    try:
        with vault.reader.rows() as catalog:
            return sorted({*catalog.vector_parts(), *Ledger(catalog.connection).identities()})
    except IndexFault:
        return []


def _rows(service: Service, vault: Vault) -> list[ProfileRow]:
    rows = []
    main = service.models.choices()[:1]
    with vault.reader.pinned() as (frame, _):
        for identity in _identities(vault):
            card = vault.reader.card(identity)
            facts = card.facts if card else {}
            done, wanted = frame.coverage(identity)
            rows.append(
                ProfileRow(
                    root=vault.root.name,
                    name=card.name if card else identity,
                    identity=identity,
                    provider=card.provider if card else "",
                    runtime=card.runtime if card else "",
                    dimension=int(facts.get("dimension", 0)),
                    embedded=done,
                    wanted=wanted,
                    failed=frame.failed(identity),
                    bytes=vault.size(identity),
                    in_use=identity == frame.active
                    or (not frame.active and bool(main) and is_made_by(card, main[0])),
                )
            )
    return rows


def is_made_by(card: ProfileCard | None, choice: ModelChoice) -> bool:
    """Tell whether a choice says the same of a model as a card does, wherever the model runs."""
    if card is None:
        return False
    made, wanted = dict(card.choice), known_of(choice)
    return {**made, "base_url": ""} == {**wanted, "base_url": ""}


def _identify(service: Service, name: str) -> str:
    """Return the identity of the profile of a name or identity; NotFound, or QueryError for several."""
    rows = list_profiles(service)
    found = sorted({row.identity for row in rows if name in (row.name, row.identity)})
    if len(found) == 1:
        return found[0]
    if found:
        raise QueryError(f"{len(found)} profiles are called {name!r}; say which: {', '.join(found)}")
    known = ", ".join(dict.fromkeys(row.name for row in rows)) or "none; run `searchsvc embed`"
    raise NotFound(f"no profile {name!r}; there are: {known}")
