"""Edges between numbered nodes: what is next to a node, what is around it, how to get from one to another."""

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable, Iterator


class Edges:
    """Directed edges among the nodes 0 to ``size`` - 1; every order is that of their numbers."""

    def __init__(self, size: int, links: Counter[int]) -> None:
        """Take how many links lead from ``source`` to ``target``, by ``source * size + target``.

        A number for each pair takes a fraction of the memory of a tuple.
        """
        self.size = size
        self.out: list[list[int]] = [[] for _ in range(size)]
        self.into: list[list[int]] = [[] for _ in range(size)]
        for pair in sorted(links):
            source, target = divmod(pair, size)
            self.out[source].append(target)
            self.into[target].append(source)
        self.total = len(links)
        self.links = links.total()
        """How many links make up all edges."""
        self._repeated = {pair: times for pair, times in links.items() if times > 1}

    def count(self, source: int, target: int) -> int:
        """Return how many links make up an edge; 0 when there is none."""
        targets = self.out[source]
        at = bisect_left(targets, target)
        if at == len(targets) or targets[at] != target:
            return 0
        return self._repeated.get(source * self.size + target, 1)

    def degree(self, node: int) -> int:
        """Return the number of edges of a node, in and out."""
        return len(self.out[node]) + len(self.into[node])

    def beside(self, node: int) -> list[int]:
        """Return the nodes one edge away: first those with edges both ways, then out, then in."""
        out, into = self.out[node], self.into[node]
        sources, targets = set(into), set(out)
        return [
            *(other for other in out if other in sources),
            *(other for other in out if other not in sources),
            *(other for other in into if other not in targets),
        ]

    def around(self, start: int, depth: int) -> Iterator[tuple[int, int, int]]:
        """Yield each node at most ``depth`` edges away, with the node before it and its distance.

        The nearest come first; within a distance they are gathered by the node before.
        """
        seen, ring = {start}, [start]
        for distance in range(1, depth + 1):
            further = []
            for via in ring:
                for node in self.beside(via):
                    if node not in seen:
                        seen.add(node)
                        further.append(node)
                        yield node, via, distance
            ring = further

    def along(self, start: int, goal: int) -> list[int]:
        """Return a shortest way that follows the edges, both ends included; empty when there is none."""
        return _way(start, goal, self.out.__getitem__)

    def across(self, start: int, goal: int) -> list[int]:
        """Return a shortest way that may go against edges."""
        return _way(start, goal, self.beside)

    def part(self, start: int) -> int:
        """Return how many nodes hang together with one, itself included."""
        return 1 + sum(1 for _ in self.around(start, self.size))


def _way(start: int, goal: int, next_to: Callable[[int], list[int]]) -> list[int]:
    before, queue = {start: start}, deque([start])
    while queue and goal not in before:
        via = queue.popleft()
        for node in next_to(via):
            if node not in before:
                before[node] = via
                queue.append(node)
    if goal not in before:
        return []
    way = [goal]
    while way[-1] != start:
        way.append(before[way[-1]])
    return way[::-1]
