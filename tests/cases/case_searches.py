"""Questions to the index: searches, and steps that change the vault between them."""

import math
import re
from typing import Any

from case_ops import Op, ReadEach
from case_world import REAL_MODEL

from searchsvc.errors import SearchError
from searchsvc.items import Answer, Hit, Ranking
from searchsvc.tokens import cost

_REPEATED = re.compile(r"<gen:(.+) \* (\d+)>")


def _query(text: str) -> str:
    found = _REPEATED.fullmatch(text)
    return " ".join([found.group(1)] * int(found.group(2))) if found else text


def _paths(ranking: Ranking) -> list[str]:
    """Return the notes of a ranking in the order of their best sections."""
    return list(dict.fromkeys(hit.path for hit in ranking.hits))


class Search(Op):
    asks = frozenset("query mode modes also table limit max_tokens vectors".split())

    def ask(self) -> None:
        self.modes = self.call.get("modes") or [self.call["mode"]]
        if self.call.get("vectors"):
            self.world.use(vectors=self.call["vectors"])
        elif set(self.modes) != {"lexical"}:
            self.world.use(model=REAL_MODEL)
        self.world.ready()
        queries = [self.call["query"], *self.call.get("also", [])]
        if "table" in self.call:
            queries = []
        self.rankings = [self._search(query, mode) for query in queries for mode in self.modes]
        self.answers = [self._answer(query, mode) for query in queries for mode in self.modes]

    def _search(self, query: str, mode: str) -> Ranking:
        return self.world.service.search(_query(query), mode=mode, top_k=self.call.get("limit", 50))

    def _answer(self, query: str, mode: str) -> Answer:
        limit, budget = min(self.call.get("limit", 10), 50), self.call.get("max_tokens", 4000)
        return self.world.service.semantic_search(_query(query), mode=mode, top_k=limit, max_tokens=budget)

    @property
    def hits(self) -> list[Hit]:
        return [hit for ranking in self.rankings for hit in ranking.hits]

    # Which

    def expect_hits(self, paths: list[str]) -> None:
        assert self.modes == ["lexical"]
        for ranking in self.rankings:
            assert sorted(_paths(ranking)) == sorted(paths)

    def expect_first(self, path: str) -> None:
        for ranking in self.rankings:
            assert _paths(ranking)[:1] == [path], _paths(ranking)

    def expect_order(self, paths: list[str]) -> None:
        for ranking in self.rankings:
            assert _paths(ranking) == paths

    def expect_order_prefix(self, paths: list[str]) -> None:
        for ranking in self.rankings:
            assert _paths(ranking)[: len(paths)] == paths

    def expect_includes(self, paths: list[str]) -> None:
        for ranking in self.rankings:
            assert set(paths) <= set(_paths(ranking))

    def expect_excludes(self, paths: list[str]) -> None:
        assert not {hit.path for hit in self.hits} & set(paths)

    def expect_empty(self, wanted: bool) -> None:
        assert (not self.hits) is wanted

    def expect_nonempty(self, wanted: bool) -> None:
        assert all(ranking.hits for ranking in self.rankings) is wanted
        assert all(answer.shown for answer in self.answers) is wanted

    def expect_first_section(self, wanted: dict[str, str]) -> None:
        for ranking in self.rankings:
            best = ranking.hits[0]
            assert {"file": best.path, "heading": best.section.title} == wanted

    def expect_table_first(self, wanted: bool) -> None:
        assert wanted is True
        for query, path in self.call["table"]:
            for mode in self.modes:
                self._check_row(query, mode, path)

    def _check_row(self, query: str, mode: str, wanted: str) -> None:
        try:
            found = _paths(self._search(query, mode))
            answer = self._answer(query, mode)
        except SearchError as error:
            assert wanted in ("<none-or-error>", "<error>") and str(error), (query, error)
            return
        assert wanted != "<error>", query
        if wanted == "<none-or-error>":
            assert not found, query
        elif wanted in ("<any>", "<valid-answer>"):
            assert answer.text and answer.cost <= self.call.get("max_tokens", 4000)
        else:
            assert found[:1] == [wanted], (query, found)

    # Scores and text

    def expect_no_error(self, wanted: bool) -> None:
        assert wanted is True  # every search of ask() has answered

    def expect_scores_positive(self, wanted: bool) -> None:
        assert bool(self.hits) and all(hit.score > 0 for hit in self.hits) is wanted

    def expect_scores_finite(self, wanted: bool) -> None:
        assert all(math.isfinite(hit.score) for hit in self.hits) is wanted

    def expect_scores_between(self, bounds: list[float]) -> None:
        assert all(bounds[0] <= hit.score <= bounds[1] for hit in self.hits)

    def expect_tokens_max(self, limit: int) -> None:
        assert all(answer.cost == cost(answer.text) <= limit for answer in self.answers)

    def expect_marks_truncated(self, paths: list[str]) -> None:
        """The reply has part of the section, its whole size, and how to get the rest."""
        for answer in self.answers:
            for path in paths:
                shown = [pair for pair in answer.shown if pair[0].path == path]
                assert shown and all(shape != "full" for _, shape in shown)
                assert all(f"{hit.cost} tok" in answer.text for hit, _ in shown)
                assert 'detail="full"' in answer.text

    def expect_text_is_valid_utf8(self, wanted: bool) -> None:
        for answer in self.answers:
            assert bool(answer.text.encode("utf-8")) is wanted

    def expect_text_lacks(self, parts: list[str]) -> None:
        texts = [*(answer.text for answer in self.answers), *(hit.text for hit in self.hits)]
        assert not [part for part in parts for text in texts if part in text]

    def expect_section_tokens_min(self, wanted: dict[str, int]) -> None:
        with self.world.catalog() as catalog:
            notes = catalog.notes()
            rows = {row.section.title: row.cost for note in notes for row in catalog.sections_of(note)}
        assert all(rows[title] >= least for title, least in wanted.items())


class Steps(Op):
    asks = frozenset({"steps"})

    def ask(self) -> None:
        steps = self.call["steps"]
        modes = {mode for step in steps for mode in step.get("modes") or [step.get("mode", "lexical")]}
        if modes != {"lexical"}:
            self.world.use(model=REAL_MODEL)
        self.refused: list[str] = []
        self.searches: list[tuple[str, str, Ranking]] = []
        for step in steps:
            known = {"op": step["op"], **step}
            getattr(self, f"_{known.pop('op')}")(**known)

    def _index(self) -> None:
        self.world.index()

    def _delete(self, file: str) -> None:
        (self.world.root / file).unlink()

    def _write(self, file: str, text: str, keep_mtime_and_size: bool = False) -> None:
        import os

        path = self.world.root / file
        before = path.stat() if path.exists() else None
        path.write_bytes(text.encode())
        if keep_mtime_and_size:
            assert before is not None and before.st_size == len(text.encode())
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    def _link(self, file: str, target: str) -> None:
        """Put a symbolic link in the place of a file or folder."""
        import shutil

        path = self.world.root / file
        shutil.rmtree(path) if path.is_dir() else path.unlink()
        path.symlink_to(target)

    def _read(self, path: str) -> None:
        reading = ReadEach(self.world, {"op": "read_each", "paths": [path]}, {})
        reading.check()
        if reading.errors:
            self.refused.append(path)

    def _search(
        self, query: str, mode: str = "lexical", modes: list[str] | None = None, label: str = ""
    ) -> None:
        for one in modes or [mode]:
            ranking = self.world.ready().search(query, mode=one)
            self.world.service.semantic_search(query, mode=one)
            self.searches.append((label, query, ranking))

    def expect_refused(self, paths: list[str]) -> None:
        assert self.refused == paths

    def expect_search_empty(self, wanted: bool) -> None:
        assert (not any(ranking.hits for _, _, ranking in self.searches)) is wanted

    def expect_excludes(self, paths: list[str]) -> None:
        assert not {path for _, _, ranking in self.searches for path in _paths(ranking)} & set(paths)

    def expect_index_left(self, wanted: dict[str, int]) -> None:
        with self.world.catalog() as catalog:
            for path, count in wanted.items():
                note = catalog.note_by_path(path)
                assert (len(catalog.sections_of(note.id)) if note else 0) == count

    def expect_by_label(self, labels: dict[str, dict[str, Any]]) -> None:
        for label, wanted in labels.items():
            found = [(query, ranking) for name, query, ranking in self.searches if name == label]
            assert found, f"no step has the label {label!r}"
            for key, value in wanted.items():
                if key == "stale_text_not_served":
                    assert all(self._is_fresh(hit) for _, r in found for hit in r.hits) is value
                else:
                    results = [_paths(ranking) for query, ranking in found if query == key]
                    assert results and all(paths == value for paths in results)

    def _is_fresh(self, hit: Hit) -> bool:
        now = self.world.note(hit.path)
        return hit.text == now.text(hit.section.line_start, hit.section.line_end)
