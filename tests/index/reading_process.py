"""Indexes with worker processes, and waits to be killed while they are at work.

Argument: a folder for notes and index.
"""

import sys
import threading
from pathlib import Path

from index_world import say

from searchsvc.config import Config, Root
from searchsvc.vault import Vault


def wait_for_the_end(stage: str, done: int, total: int) -> None:
    say("reading")
    threading.Event().wait()


def main(folder: Path) -> None:
    notes = folder / "notes"
    notes.mkdir()
    for number in range(8):
        (notes / f"{number}.md").write_text("# Title\n\n" + "some words to read here\n" * 25_000)
    Vault(Root("notes", notes), Config(data_dir=folder / "data", workers=2)).update(progress=wait_for_the_end)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
