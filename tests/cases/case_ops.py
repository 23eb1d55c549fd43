"""What cases ask, and what they may expect; a key that nobody knows fails the case."""

from pathlib import Path
from typing import Any

import pytest
from case_world import World

from searchsvc.reading.note import read_note


class Op:
    """One question to the product. ``expect_x`` checks what a case expects under ``x``."""

    asks: frozenset[str] = frozenset()
    """Keys of ``call`` that the question understands."""
    modifiers: frozenset[str] = frozenset()
    """Keys of ``expect`` that change how another key is read."""

    def __init__(self, world: World, call: dict[str, Any], expect: dict[str, Any]) -> None:
        self.world, self.call, self.expect = world, call, expect

    def check(self) -> None:
        unknown = set(self.call) - self.asks - {"op"}
        assert not unknown, f"the adapter does not know how to ask {sorted(unknown)} of {self.call['op']}"
        checks = {key: getattr(self, f"expect_{key}", None) for key in self.expect}
        strange = [key for key in checks if checks[key] is None and key not in self.modifiers]
        assert not strange, f"the adapter does not know how to expect {strange} of {self.call['op']}"
        self.ask()
        for key, check in checks.items():
            if check is not None:
                check(self.expect[key])

    def ask(self) -> None:
        """Ask the product; what it answers is kept on ``self``."""

    # Expectations of every question

    def expect_no_crash(self, wanted: bool) -> None:
        assert wanted is True  # ask() raised nothing

    def expect_indexed(self, paths: list[str]) -> None:
        found = self.world.indexed()
        if self.expect.get("exact"):
            assert found == sorted(paths)
        assert set(paths) <= set(found)

    def expect_searchable(self, words: list[str]) -> None:
        for word in words:
            hits = self.world.ready().search(word, mode="lexical").hits
            assert hits, f"{word!r} is not found"
            if "file" in self.call:
                assert {hit.path for hit in hits} == {self.call["file"]}

    def expect_also(self, more: dict[str, Any]) -> None:
        """Ask something else of the same vault."""
        from case_run import OPS

        kind = OPS[more["op"]]
        call = {key: value for key, value in more.items() if key == "op" or key in kind.asks}
        kind(self.world, call, {key: value for key, value in more.items() if key not in call}).check()


class Import(Op):
    """Makes a note of a book."""

    asks = frozenset({"file"})

    def ask(self) -> None:
        pytest.importorskip("markdownify", reason="the extra epub is not installed")
        from searchsvc.importing.base import Limits
        from searchsvc.importing.epub import convert

        data = (self.world.root / self.call["file"]).read_bytes()
        self.note = read_note("book.md", convert(data, Limits()).markdown.encode())

    def expect_headings_text(self, titles: list[str]) -> None:
        assert [section.title for section in self.note.sections if section.level] == titles


class Index(Op):
    modifiers = frozenset({"exact", "may_also", "needs"})

    def ask(self) -> None:
        import time

        before = time.process_time()
        self.world.index()
        self.seconds = time.process_time() - before

    def expect_max_seconds(self, limit: float) -> None:
        assert self.seconds <= limit  # of this process alone, so that a busy machine does not matter

    def expect_indexed_or_reported(self, paths: list[str]) -> None:
        problems = {problem.path for problem in self.world.problems() if problem.reason}
        assert set(paths) <= problems | set(self.world.indexed())

    def expect_indexed_includes(self, paths: list[str]) -> None:
        extra = set(self.world.indexed()) - set(paths)
        self.expect_indexed(paths)
        assert extra <= set(self.expect.get("may_also", extra))

    def expect_not_indexed(self, paths: list[str]) -> None:
        assert not set(paths) & set(self.world.indexed())

    def expect_each_once(self, wanted: bool) -> None:
        real = [(self.world.root / path).resolve() for path in self.world.indexed()]
        assert (len(real) == len(set(real))) is wanted

    def expect_warns_about(self, paths: list[str]) -> None:
        reasons = {problem.path: problem.reason for problem in self.world.problems()}
        assert all(reasons.get(path) for path in paths), reasons

    expect_reported = expect_warns_about

    def expect_outline(self, files: dict[str, Any]) -> None:
        for file, headings in files.items():
            self.expect_also({"op": "outline", "file": file, "headings": headings})

    def expect_headings_include(self, files: dict[str, list[str]]) -> None:
        for file, titles in files.items():
            assert set(titles) <= {section.title for section in self.world.note(file).sections}

    def expect_frontmatter(self, files: dict[str, Any]) -> None:
        for file, expected in files.items():
            self.expect_also({"op": "frontmatter", "file": file, **expected})

    def expect_not_created(self, names: list[str]) -> None:
        for folder in (Path.cwd(), self.world.folder):
            for name in names:
                assert not (folder / name).exists() and not list(self.world.folder.rglob(name))

    def expect_answers_valid_json(self, wanted: bool) -> None:
        assert wanted is True
        assert self._everything_said().encode("utf-8")

    def expect_answer_bytes_max(self, limit: int) -> None:
        assert len(self._everything_said().encode("utf-8")) <= limit

    def _everything_said(self) -> str:
        """Return all that the product can tell of the vault, as JSON."""
        import json
        from dataclasses import asdict

        notes = [self.world.note(path) for path in self.world.indexed()]
        said = [asdict(self.world.service.status()), *(asdict(note) for note in notes)]
        words = [self.world.service.semantic_search(note.title, mode="lexical").text for note in notes]
        return json.dumps([*said, *words], ensure_ascii=False, allow_nan=False)


class ReadEach(Op):
    asks = frozenset({"paths"})

    def ask(self) -> None:
        from searchsvc.errors import NotFound, ReadingError

        self.texts: list[str] = []
        self.errors: list[tuple[str, str]] = []
        for asked in map(self.world.fill, self.call["paths"]):
            try:
                self.texts.append("\n".join(self.world.note(asked).lines))
            except (ReadingError, NotFound) as error:
                self.errors.append((asked, str(error)))

    def expect_all_refused(self, wanted: bool) -> None:
        assert wanted is True
        assert not self.texts and all(message for _, message in self.errors)

    def expect_text_lacks(self, words: list[str]) -> None:
        said = [*self.texts, *(message for _, message in self.errors)]
        assert not [word for word in words for text in said if word in text]

    def expect_error_lacks_content(self, wanted: bool) -> None:
        """Nothing of a file and no absolute path of the vault, unless the asker wrote it."""
        assert wanted is True
        secrets = [str(self.world.folder)]
        for file in self.world.folder.rglob("*.md"):
            if file.is_file():
                text = file.read_text(encoding="utf-8", errors="replace")
                secrets += [line for line in text.splitlines() if len(line) > 4]
        for asked, message in self.errors:
            rest = message.replace(repr(asked), "")
            assert not [secret for secret in secrets if secret in rest]
