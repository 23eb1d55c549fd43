"""A reader over a small vault whose files can be written, dated and indexed."""

import os
import re
from pathlib import Path

from searchsvc.config import Config, make_root
from searchsvc.items import Reply
from searchsvc.reader import Reader
from searchsvc.service import Service

BIRDS = {
    "birds/heron.md": "---\nauthor: Ada\ntags: [reeds]\n---\n# The Heron\n\n"
    "Herons stand still in the reeds.\n\n"
    "## Nests\n\nThey nest in high\ntrees near water.\n\n"
    "## Food\n\nFish, frogs and a heron's patience.\n",
    "birds/owl.md": "# Owls\n\nOwls hunt at night.\n\n## Food\n\nMice.\n",
    "old/owl.md": "# Owls\n\nAn older note on owls.\n",
    "plain.md": "No heading here, just café and naïve words.\n",
}


class ReaderWorld:
    """Notes below ``notes``, their index below ``data``."""

    def __init__(self, folder: Path, notes: dict[str, str] = BIRDS, **settings: object) -> None:
        self.folder = folder
        self.notes = folder / "notes"
        self.notes.mkdir(parents=True, exist_ok=True)
        for age, (path, text) in enumerate(notes.items()):
            self.write(path, text, age=age * 100)
        config = {"model": "none", "instant_model": "none", "data_dir": folder / "data", **settings}
        self.config = Config(roots=(make_root(self.notes, "notes"),), **config)  # type: ignore[arg-type]
        self.service = Service(self.config)
        self.service.index()
        self.reader = Reader(self.service)

    def write(self, path: str, text: str, age: float = 0) -> Path:
        file = self.notes / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())
        os.utime(file, (1_700_000_000 - age,) * 2)
        return file


def text_of(reply: Reply) -> str:
    return "\n".join(str(block) for block in reply.blocks)


def cursor_of(rest: str) -> str:
    found = re.search('cursor="([^"]+)"', rest)
    return found[1] if found else ""
