"""What a batch job would do: texts, tokens, cost and time, before a single text is sent."""

from dataclasses import dataclass

import numpy as np

from searchsvc.batch import rate_key, read_passages
from searchsvc.embedding.base import ModelChoice, Passage
from searchsvc.service import Service
from searchsvc.tokens import cost
from searchsvc.vault import Vault

_SAMPLE = 200
_OVERLAP = 1.15
"""Windows of long texts overlap by an eighth, and each repeats its context."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What embedding everything that is missing would take."""

    model: str
    provider: str
    texts: int
    """Distinct texts without vectors."""
    tokens: int
    """About as many, rather less; a heading and a context line go with each text."""
    dollars: float | None
    """By the setting ``prices``; none when that does not name the model."""
    seconds: float | None
    """By the rate of an earlier run; none when there was none."""


def estimate(service: Service) -> Estimate | None:
    """Return what `embed` would do for the model of the settings; none when there is no model.

    Loads the model, or asks its server for one vector, to know what is missing; EmbeddingError when that
    fails.
    """
    choices = service.models.choices()
    if not choices:
        return None
    choice = choices[0]
    identity = service.slots[0].require().profile.identity
    parts = [_of_vault(vault, identity) for vault in service.vaults]
    texts, tokens = sum(n for n, _, _ in parts), sum(t for _, t, _ in parts)
    rates = [rate for _, _, rate in parts if rate]
    return Estimate(
        model=choice.model,
        provider=choice.provider,
        texts=texts,
        tokens=tokens,
        dollars=_dollars(service, choice, tokens),
        seconds=texts / (sum(rates) / len(rates)) if rates else None,
    )


def _dollars(service: Service, choice: ModelChoice, tokens: int) -> float | None:
    price = service.config.prices.get(choice.model)
    return None if price is None else price * tokens / 1e6


def _of_vault(vault: Vault, identity: str) -> tuple[int, int, float]:
    """Return texts and tokens that are missing in a root, and the texts a second of its last run."""
    with vault.reader.pinned() as (frame, catalog):
        places = frame.missing(identity)
        rate = float(catalog.meta().get(rate_key(identity), 0))
        if not len(places):
            return 0, 0, rate
        costs = frame.table["cost"][places].astype(np.int64)
        sample = places[np.linspace(0, len(places) - 1, min(_SAMPLE, len(places))).astype(int)]
        pairs = [(int(section), 0) for section in frame.table["id"][sample].tolist()]
        beside = [_beside(passage) for _, passage in read_passages(catalog, pairs)]
    return len(places), int(costs.sum() * _OVERLAP + np.mean(beside) * len(places)), rate


def _beside(passage: Passage) -> int:
    """Return the tokens sent with a text: its context before it, and heading and context alone."""
    return 2 * cost(passage.context) + cost(passage.heading)
