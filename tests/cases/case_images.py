"""Reading a note with its images."""

import socket
from typing import Any
from unittest import mock

from case_ops import Op

from searchsvc.items import Picture


class ReadWithImages(Op):
    asks = frozenset({"file"})

    def ask(self) -> None:
        self.written = (self.world.root / self.call["file"]).read_text(encoding="utf-8")
        with (
            mock.patch.object(
                socket.socket, "connect", side_effect=AssertionError("a connection")
            ) as connect,
            mock.patch.object(
                socket, "getaddrinfo", side_effect=AssertionError("a name looked up")
            ) as lookup,
        ):
            self.reply = self.world.service.documents.read_md_with_images(self.call["file"])
            self.requests = connect.call_count + lookup.call_count
        self.pictures = [block for block in self.reply.blocks if isinstance(block, Picture)]

    def expect_inlined(self, files: list[str]) -> None:
        assert len(self.pictures) == len(files)
        for file in files:
            assert f"[image: {file}" in self.reply.text

    def expect_blocked(self, count: int) -> None:
        assert len([note for note in self.reply.notes if "is not sent" in note]) == count

    def expect_text_kept(self, wanted: bool) -> None:
        rest = self.written.replace("![d](ok.png)", "").strip()
        assert (rest in self.reply.text) is wanted

    def expect_outbound_requests(self, count: int) -> None:
        assert self.requests == count

    def expect_images_inlined(self, count: int) -> None:
        assert len(self.pictures) == count

    expect_local_files_read_outside = expect_images_inlined

    def expect_no_error(self, wanted: Any) -> None:
        assert wanted is True and self.written.strip() in self.reply.text
