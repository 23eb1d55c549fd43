"""Rewrites all notes in every round, indexes and embeds them, as fast as it can.

Arguments: the folder of the world, how many notes, how many rounds.
"""

import sys
from pathlib import Path

from index_world import World, say


def main(folder: Path, notes: int, rounds: int) -> None:
    world = World(folder)
    for number in range(rounds):
        for note in range(notes):
            world.write(f"{note}.md", f"shared round{number} [[{(note + 1) % notes}]]\n")
        world.index()
        world.embed()
        if not number:
            say("begun")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
