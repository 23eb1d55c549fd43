"""Indexes under a limit on the size of files, which fails writes part way as a full disk does.

Arguments: the folder of the world, then the limit in bytes.
"""

import resource
import sys
from pathlib import Path

from index_world import World, say

from searchsvc.errors import IndexFault


def main(folder: Path, limit: int) -> None:
    world = World(folder)
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    for step in (world.index, world.embed):
        try:
            step()
            say("done")
        except IndexFault as fault:
            say(f"fault: {fault}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
