"""Keeps changing notes, indexing and embedding them, and says what is committed, until it is killed.

Arguments: the folder of the world, the number of the first round, how many file operations to survive
(0 for no limit), how many rounds to make. Rounds change ``changing.md``, add ``round-<n>.md`` and delete
the one of three rounds before. Killing itself at the n-th operation reaches moments between any two
steps, which a kill from outside hits by luck only.
"""

import json
import os
import signal
import sys
from pathlib import Path

from index_world import World, say

FILLER = "\n".join(f"Line {n} of filler text about nothing, with word{n}." for n in range(40))


def main(folder: str, first: int, survive: int, rounds: int) -> None:
    world = World(Path(folder))
    if survive:
        die_at(survive, str(world.config.data_dir))
    for number in range(first, first + rounds):
        world.write("changing.md", f"# Changing\n\nversion{number}\n\n## Part\n\n{FILLER}\n\npart{number}\n")
        world.write(f"round-{number}.md", f"# Round\n\nround{number} [[changing#Part|link{number}]]\n")
        (world.notes / f"round-{number - 3}.md").unlink(missing_ok=True)
        world.index()
        say(json.dumps({"indexed": number}))
        world.embed()
        say(json.dumps({"embedded": number}))


def die_at(operation: int, data_dir: str) -> None:
    """Kill this process, as a power cut would, before the n-th operation on a file of the index."""
    left = operation

    def count(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal left
        if event in ("open", "os.rename", "os.mkdir", "os.rmdir", "os.remove", "sqlite3.connect"):
            left -= str(arguments[0]).startswith(data_dir)
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:5]))
