"""The card that lies beside the vectors of a profile: what made them, and a vector to recognise it by."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchsvc.index.faults import write_fault
from searchsvc.index.layout import Layout

SAME = 0.999
"""Least cosine of two vectors of one text by one model; the rest is left to rounding."""


@dataclass(frozen=True, slots=True)
class ProfileCard:
    """What is known of a profile that has vectors here."""

    identity: str
    facts: Mapping[str, Any]
    """Fields of the profile."""
    choice: Mapping[str, Any]
    """How the model is loaded again: provider, model, address and so on; never a secret."""
    probe: NDArray[np.float32]
    """Its vector of a fixed text, shape ``(dimension,)``."""

    @property
    def name(self) -> str:
        """Name of the model."""
        return str(self.facts.get("name", self.identity))

    @property
    def provider(self) -> str:
        """What runs the model, as the settings call it."""
        return str(self.choice.get("provider", "local"))

    @property
    def runtime(self) -> str:
        """How the provider runs it, such as ``onnx``; empty where the provider says it all."""
        made_by = str(self.facts.get("provider", ""))
        return "" if made_by == self.provider else made_by

    def recognises(self, probe: NDArray[np.float32]) -> float:
        """Return the cosine of a vector with the one kept; 1 for the same model."""
        if probe.shape != self.probe.shape:
            return 0.0
        return float(probe.astype(np.float64) @ self.probe.astype(np.float64))


def write_card(layout: Layout, card: ProfileCard) -> None:
    """Store a card; it appears whole or not at all."""
    file = layout.profile_card(card.identity)
    content = {"facts": card.facts, "choice": card.choice, "probe": [float(x) for x in card.probe]}
    staging = file.with_suffix(".tmp")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with staging.open("w", encoding="utf-8") as stream:
            json.dump(content, stream)
            stream.flush()
            os.fsync(stream.fileno())
        staging.replace(file)
    except OSError as error:
        raise write_fault(error) from error


def read_card(layout: Layout, identity: str) -> ProfileCard | None:
    """Return the card of a profile; none when it has none that can be read, as in an older index."""
    try:
        content = json.loads(layout.profile_card(identity).read_text(encoding="utf-8"))
        probe = np.array(content["probe"], dtype=np.float32)
        return ProfileCard(identity, dict(content["facts"]), dict(content["choice"]), probe)
    except (OSError, ValueError, KeyError, TypeError):
        return None
