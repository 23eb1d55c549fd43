"""Policies that rank by searchsvc, and those that say what is best and worst: oracle, order, chance."""

import json
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from benchmark.core import Session
from benchmark.study.evidence import (
    BUDGETS,
    CAP,
    MAIN,
    Asked,
    Corpus,
    Place,
    Policy,
    Reply,
    Row,
    Trace,
    Unit,
    trace,
)
from searchsvc.items import Answer, Mode
from searchsvc.service import MIN_TOKENS, Service
from searchsvc.tokens import cost

RANKED = 200
"""Sections of a ranking; the product ranks no more."""
PAGE = 10
"""Sections of one call, as the product has it by default."""
BEST = 3
"""Sections whose links are followed."""
LINKED = 5
"""Sections that are shown because of these links."""
WINDOW = 40
"""Lines of a fixed window."""
SEEDS = range(5)
"""Of the orders by chance."""
_HEAD = re.compile(r"^={3,} (\d+)\. .*?(?: · only L(\d+)-(\d+))?$", re.MULTILINE)
"""The line before a section in a reply: its number, and which lines follow when that is only a part."""
_HEADING = re.compile(r" {0,3}(?:> ?)*#{1,6}(?=\s|$)")
_RULE = re.compile(r" {0,3}(?:=+|-+|(?:\* *){3,}|(?:_ *){3,})\s*$")

Range = tuple[str, int, int]
"""Path, first and last line."""


class Ranked:
    """Shows sections, or windows, in the order of a ranking."""

    def __init__(self, service: Service, corpus: Corpus) -> None:
        self.service, self.corpus = service, corpus
        self._sections = [
            (path, section.line_start, section.line_end)
            for path, note in corpus.notes.items()
            for section in note.sections
        ]
        self._links: dict[Range, list[tuple[str, Range | None]]] = {}
        self._read_links()

    def policies(self) -> dict[str, Policy]:
        """Return the policies by name; those that need vectors only where there is a model."""
        names: dict[str, Mode] = {"lexical": "lexical"}
        if self.service.slots:
            names |= {"vector": "vector", "hybrid": "hybrid"}
        policies: dict[str, Policy] = {name: partial(self._ranked, mode) for name, mode in names.items()}
        return {**policies, "hybrid+links": self._linked} if self.service.slots else policies

    def reply(self, asked: Asked, units: Sequence[Unit], *, more: bool = False) -> Trace:
        """Return what ``semantic_search`` itself shows at each budget, which is what an agent gets.

        One reply, or with ``more`` one after the other, by the cursor of the last, while the budget lasts.
        A reply is paid whole: what it shows counts as shown at its end, and "first" is the cost of the
        least that shows any evidence. Calls are those at the smallest and at the main budget.
        """
        recall, spent, calls, shown_at = list[float](), list[int](), list[int](), dict[int, int]()
        for budget in BUDGETS:
            shown, paid, cursor, count = set[Place](), 0, "", 0
            while budget - paid >= MIN_TOKENS and (not count or (more and cursor)):
                answer = self._answer(asked, budget - paid, cursor)
                shown |= self._shown(answer)
                paid, cursor, count = paid + answer.cost, answer.cursor, count + 1
                for number, unit in enumerate(units):
                    if len(unit.places & shown) >= unit.needed:
                        shown_at[number] = min(paid, shown_at.get(number, CAP))
            recall.append(sum(len(u.places & shown) >= u.needed for u in units) / max(len(units), 1))
            spent.append(paid)
            calls.append(count)
        first = min(shown_at.values(), default=None)
        last = max(shown_at.values(), default=None) if len(shown_at) == len(units) else None
        return Trace(len(units), tuple(recall), first, last, tuple(spent), calls[0], calls[MAIN])

    # Within

    def _ranked(self, mode: Mode, asked: Asked) -> Iterator[Reply]:
        return _pages(self.corpus, asked, self._ranges(asked, mode), self._sections)

    def _linked(self, asked: Asked) -> Iterator[Reply]:
        return _pages(self.corpus, asked, self._with_links(self._ranges(asked, "hybrid")), self._sections)

    def _ranges(self, asked: Asked, mode: Mode) -> list[Range]:
        hits = self.service.search(asked.text, mode=mode, top_k=RANKED, path=_only_path(asked)).hits
        return [(hit.path, hit.section.line_start, hit.section.line_end) for hit in hits]

    def _with_links(self, ranges: list[Range]) -> list[Range]:
        """Put the sections that the best ones link to right behind these.

        A link to a whole note leads to the section of it that the same ranking has first. Of many links
        those to the best ranked sections are followed.
        """
        best, rank = ranges[:BEST], {where: place for place, where in enumerate(ranges)}
        targets = set[Range]()
        for where in best:
            for path, section in self._links.get(where, ()):
                of_note = next((other for other in ranges if other[0] == path), None)
                targets |= {target for target in (section or of_note,) if target and target not in best}
        linked = sorted(targets, key=lambda where: (rank.get(where, len(rank)), where))[:LINKED]
        return list(dict.fromkeys([*best, *linked, *ranges]))

    def _read_links(self) -> None:
        with self.service.pinned() as pinned:
            for _, catalog in pinned.named_catalogs():
                paths = {note.id: note.path for note in catalog.notes().values()}
                ranges = {note: [row.section for row in catalog.sections_of(note)] for note in paths}
                for _, note, link, (target, target_section) in catalog.links():
                    if target is None or target == note:
                        continue
                    source = next((s for s in ranges[note] if s.line_start <= link.line <= s.line_end), None)
                    if source is None:
                        continue
                    # A link without a heading is stored as one to the first section.
                    named = target_section if link.heading else None
                    found = catalog.sections([named])[named].section if named is not None else None
                    path = paths[target]
                    section = (path, found.line_start, found.line_end) if found else None
                    where = (paths[note], source.line_start, source.line_end)
                    self._links.setdefault(where, []).append((path, section))

    def _answer(self, asked: Asked, budget: int, cursor: str) -> Answer:
        path = _only_path(asked)
        return self.service.semantic_search(asked.text, max_tokens=budget, path=path, cursor=cursor)

    def _shown(self, answer: Answer) -> set[Place]:
        """Return the lines that a reply shows whole, by the lines of ours that say which parts they are."""
        heads = {int(match[1]): match for match in _HEAD.finditer(answer.text)}
        places = set[Place]()
        for number, (hit, shape) in enumerate(answer.shown, min(heads, default=1)):
            first, last = hit.section.line_start, hit.section.line_end
            if shape == "window":
                # A piece of a line is not taken for the line.
                first, last = (int(heads[number][2] or 1), int(heads[number][3] or 0))
            if shape != "list":
                places |= {(hit.path, number) for number in range(first, last + 1)}
        return places


class Windows:
    """Fixed windows of lines, ranked as notes of their own: no section has a say in where text is cut.

    Each window is a note with the title of the one that it was cut from, which sections are ranked with as
    well. Headings lose their marks, or a window would again be cut at them; what is shown is the original.
    """

    def __init__(self, corpus: Corpus, folder: Path) -> None:
        self.corpus, self.folder = corpus, folder
        self._ranges: dict[str, Range] = {}
        self._folders: dict[str, str] = {}
        for number, note in enumerate(corpus.notes.values()):
            self._folders[note.path] = f"{number:05}"
            (folder / f"{number:05}").mkdir()
            for start in range(0, len(note.lines), WINDOW):
                lines = note.lines[start : start + WINDOW]
                name = f"{number:05}/{start:06}.md"
                self._ranges[name] = (note.path, start + 1, start + len(lines))
                body = "\n".join(map(_without_marks, lines))
                title = json.dumps(note.title, ensure_ascii=False)
                (folder / name).write_text(f"---\ntitle: {title}\n---\n{body}\n", encoding="utf-8")

    def policy(self, session: Session) -> Policy:
        """Return the policy, by an open session over the folder of windows."""

        def show(asked: Asked) -> Iterator[Reply]:
            path = self._folders.get(_only_path(asked), "")
            hits = session.service.search(asked.text, top_k=RANKED, path=path).hits
            return _pages(self.corpus, asked, [self._ranges[hit.path] for hit in hits], self._ranges.values())

        return show


def _only_path(asked: Asked) -> str:
    """Return the document that a question is asked of; empty for all notes, and for several."""
    return asked.paths[0] if asked.is_narrowed and len(asked.paths) == 1 else ""


def _pages(
    corpus: Corpus, asked: Asked, ranked: Iterable[Range], everything: Iterable[Range]
) -> Iterator[Reply]:
    """Show ranges in their order, some a call, each below a line that says which it is.

    Where the ranking ends the rest follows in order of paths, as it does for grep.
    """
    allowed = set(asked.paths)
    ranges = [where for where in dict.fromkeys([*ranked, *everything]) if where[0] in allowed]
    for start in range(0, len(ranges), PAGE):
        rows = list[Row]()
        for number, (path, first, last) in enumerate(ranges[start : start + PAGE], start + 1):
            rows.append(Row(f"=== {number}. {path} L{first}-{last}"))
            rows += corpus.rows(path, first, last)
        yield rows


def _without_marks(line: str) -> str:
    return "" if _RULE.match(line) else _HEADING.sub("", line)


def sequential(corpus: Corpus) -> Policy:
    """Return the policy that reads all files in order of paths."""
    return lambda asked: (corpus.read(path) for path in asked.paths)


def by_chance(corpus: Corpus, seed: int) -> Policy:
    """Return the policy that reads sections in an order by chance, one a call; the same for a seed."""

    def read(asked: Asked) -> Iterator[Reply]:
        sections = [(path, s) for path in asked.paths for s in corpus.notes[path].sections]
        random.Random(f"{seed}:{asked.text}").shuffle(sections)
        for path, section in sections:
            yield corpus.read(path, section.line_start, section.line_end)

    return read


def oracle(corpus: Corpus, units: Sequence[Unit]) -> Trace:
    """Return what is paid by one who knows the evidence: its lines alone, the cheapest piece first.

    It stands for the least that any policy can pay, and is the only one that is given the evidence.
    """

    def price(place: tuple[str, int]) -> tuple[int, tuple[str, int]]:
        return cost(corpus.notes[place[0]].lines[place[1] - 1]), place

    chosen = [sorted(sorted(unit.places, key=price)[: unit.needed]) for unit in units]
    chosen.sort(key=lambda places: (sum(price(place)[0] for place in places), places))
    rows = [row for places in chosen for path, line in places for row in corpus.rows(path, line, line)]
    return trace([rows], units)
