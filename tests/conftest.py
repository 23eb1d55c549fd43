"""What all tests share: no home folder, network or settings from outside."""

import os
import socket

import pytest
from hypothesis import settings

# The same examples at every run: a failure must come from a change, not from luck.
settings.register_profile("fixed", derandomize=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))


@pytest.fixture(autouse=True)
def _sealed(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Point every user folder into the temporary folder, and refuse connections to other machines."""
    home = tmp_path_factory.getbasetemp() / "home"
    home.mkdir(exist_ok=True)
    for name in ("HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(home))
    for name in list(os.environ):
        if name.startswith(("XDG_", "SEARCHSVC_")) and name != "SEARCHSVC_TEST_MODELS":
            monkeypatch.delenv(name)
    connect = socket.socket.connect

    def refuse(self: socket.socket, address: object) -> None:
        local = self.family == getattr(socket, "AF_UNIX", None) or str(address).startswith(
            ("('127.", "('::1'", "('localhost'")
        )
        assert local, f"a test tried to reach {address}"
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", refuse)
