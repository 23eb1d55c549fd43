"""Runs one case; as a program, one that comes as JSON on standard input, as another user if asked."""

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from case_images import ReadWithImages
from case_notes import Backlinks, FrontMatter, Images, Links, Outline, ReadSection, Resolve, Tags
from case_ops import Import, Index, Op, ReadEach
from case_searches import Search, Steps
from case_world import World

OPS: dict[str, type[Op]] = {
    "outline": Outline, "section": ReadSection, "frontmatter": FrontMatter, "tags": Tags,
    "links": Links, "backlinks": Backlinks, "resolve": Resolve, "images": Images,
    "read_with_images": ReadWithImages, "index": Index, "search": Search, "steps": Steps,
    "read_each": ReadEach, "import": Import,
}  # fmt: skip
SESSIONS = ("mcp_session", "mcp_parallel")
"""Cases about a server; see test_mcp_cases.py."""
KNOWN_KEYS = frozenset("id source area what files call expect basis why".split())


def run(case: dict[str, Any], folder: Path, *, reverse: bool = False) -> None:
    """Check everything a case expects; raises ``AssertionError`` where it is not so."""
    assert set(case) <= KNOWN_KEYS, f"the adapter does not know {sorted(set(case) - KNOWN_KEYS)}"
    call = {key: value for key, value in case["call"].items() if key != "repeat"}
    assert call["op"] in OPS, f"the adapter does not know the question {call['op']!r}"
    world = World(folder, case["files"], reverse=reverse)
    try:
        OPS[call["op"]](world, call, case["expect"]).check()
    finally:
        world.reopen()


def main() -> None:
    order = json.load(sys.stdin)
    if order.get("user"):
        with tempfile.TemporaryDirectory() as folder:  # loads what the new user may not be able to read
            World(Path(folder), {"a.md": "# A\n\nword\n"}).ready().search("word")
        os.setgroups([])
        os.setgid(order["user"])
        os.setuid(order["user"])
    with tempfile.TemporaryDirectory() as folder:
        run(order["case"], Path(folder), reverse=order.get("reverse", False))


if __name__ == "__main__":
    main()
