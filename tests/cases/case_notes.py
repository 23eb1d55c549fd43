"""Questions about one note: its outline, sections, properties, links, images and tags."""

import json
import unicodedata
from typing import Any

from case_ops import Op
from case_world import anchors

from searchsvc.index.links import Anchors, Destination
from searchsvc.items import Image, Link, Note, Section
from searchsvc.reading.note import read_note


def headings(note: Note) -> list[Section]:
    return [section for section in note.sections if section.level]


def check_headings(note: Note, wanted: list[dict[str, Any]], may_also: list[str]) -> None:
    found = [s for s in headings(note) if s.title not in may_also]
    assert [(s.level, s.line_start) for s in found] == [(w["level"], w["line"]) for w in wanted]
    for section, heading in zip(found, wanted, strict=True):
        assert set(heading) <= {"level", "line", "text", "raw"}
        titles = [" ".join(heading[key].split()) for key in ("text", "raw") if key in heading]
        assert section.title in titles


class OnFile(Op):
    """A question about ``call.file``."""

    asks = frozenset({"file"})
    modifiers = frozenset({"may_also_list"})

    def ask(self) -> None:
        self.note = self.world.note(self.call["file"])

    def expect_headings(self, wanted: list[dict[str, Any]]) -> None:
        check_headings(self.note, wanted, self.expect.get("may_also_list", []))

    def expect_no_error(self, wanted: bool) -> None:
        assert wanted is True and not self.note.problems


class Outline(OnFile):
    def expect_ids_unique(self, wanted: bool) -> None:
        ids = [section.slug for section in self.note.sections]
        assert (len(ids) == len(set(ids))) is wanted

    def expect_ids_nonempty(self, wanted: bool) -> None:
        assert all(part for s in self.note.sections for part in s.slug.split("/")) is wanted

    def expect_ids_lack(self, parts: list[str]) -> None:
        assert not [s.slug for s in self.note.sections for part in parts if part in s.slug]

    def expect_titles_lack(self, parts: list[str]) -> None:
        assert not [s.title for s in self.note.sections for part in parts if part in s.title]

    def expect_roundtrip(self, wanted: bool) -> None:
        """Every id leads back to its section, and so does every GitHub anchor in a Markdown link."""
        assert wanted is True
        sections = headings(self.note)
        for section in sections:
            assert [s.line_start for s in sections if s.slug == section.slug] == [section.line_start]
            if section.anchor:
                found = Anchors(anchors(self.note)).find(section.anchor, wiki=False)
                assert found is not None and found.line_start == section.line_start

    def expect_github_slugs(self, slugs: list[str]) -> None:
        assert [section.anchor for section in headings(self.note)] == slugs

    def expect_parents(self, pairs: list[list[int | None]]) -> None:
        lines = {s.line_start: s for s in self.note.sections}
        for line, parent in pairs:
            above = lines[line].parent
            assert (self.note.sections[above].line_start if above >= 0 else None) == parent

    def expect_section_lines(self, wanted: list[dict[str, Any]]) -> None:
        sections = {s.line_start: s for s in headings(self.note)}
        for item in wanted:
            assert set(item) <= {"line", "own", "subtree"}
            section = sections[item["line"]]
            for key, end in (("own", section.line_end), ("subtree", section.subtree_end)):
                if key in item:
                    start, stop = item[key]
                    assert section.line_start == start
                    assert end <= stop and not self.note.text(end + 1, stop).strip()

    def expect_must_contain_line(self, wanted: dict[str, int]) -> None:
        sections = {str(s.line_start): s for s in self.note.sections}
        assert all(sections[k].line_start <= line <= sections[k].line_end for k, line in wanted.items())


class ReadSection(OnFile):
    asks = frozenset({"file", "heading", "subtree"})

    def ask(self) -> None:
        super().ask()
        found = Anchors(anchors(self.note)).find(self.call["heading"])
        assert found is not None, f"no section {self.call['heading']!r}"
        self.section = self.note.sections[found.id]
        whole = self.call.get("subtree", True)
        end = self.section.subtree_end if whole else self.section.line_end
        self.text = self.note.text(self.section.line_start, end)

    def expect_line(self, line: int) -> None:
        assert self.section.line_start == line

    def expect_starts_with(self, text: str) -> None:
        assert self.text.startswith(text)

    def expect_contains(self, parts: list[str]) -> None:
        assert not [part for part in parts if part not in self.text]

    def expect_lacks(self, parts: list[str]) -> None:
        assert not [part for part in parts if part in self.text]

    def expect_verbatim(self, wanted: bool) -> None:
        stored = (self.world.root / self.call["file"]).read_bytes().decode()
        assert (self.text in stored.replace("\r\n", "\n").replace("\r", "\n")) is wanted

    def expect_outline(self, wanted: list[dict[str, Any]]) -> None:
        check_headings(self.note, wanted, [])


class FrontMatter(OnFile):
    def expect_data(self, data: dict[str, Any]) -> None:
        assert _typed(self.note.properties) == _typed(data)

    def expect_data_any_of(self, several: list[dict[str, Any]]) -> None:
        assert _typed(self.note.properties) in map(_typed, several)

    def expect_data_subset(self, data: dict[str, Any]) -> None:
        assert _typed({k: v for k, v in self.note.properties.items() if k in data}) == _typed(data)

    def expect_json_safe(self, wanted: bool) -> None:
        again = json.loads(json.dumps(self.note.properties, allow_nan=False))
        assert (_typed(again) == _typed(self.note.properties)) is wanted

    def expect_error(self, wanted: bool) -> None:
        assert any("front matter" in problem for problem in self.note.problems) is wanted

    def expect_warns(self, word: str) -> None:
        assert any(word in problem for problem in self.note.problems)

    def expect_body(self, text: str) -> None:
        assert self.note.text(self.note.body_start, len(self.note.lines)) == text

    def expect_tags(self, tags: list[str]) -> None:
        assert sorted(self.note.tags) == sorted(tags)

    def expect_aliases(self, aliases: list[str]) -> None:
        assert list(self.note.aliases) == aliases

    def expect_title(self, title: str) -> None:
        assert self.note.title == title


def _typed(value: Any) -> str:
    """Return a form in which 1, 1.0, true and "1" differ."""
    return json.dumps(value, sort_keys=True)


class Tags(Op):
    def expect_tags(self, files: dict[str, list[str]]) -> None:
        for file, tags in files.items():
            assert sorted(self.world.note(file).tags) == sorted(tags), file


class Links(OnFile):
    def ask(self) -> None:
        super().ask()
        self.found = [(link, self._destination(link)) for link in self.note.links]

    def _destination(self, link: Link) -> Destination:
        return self.world.resolver().resolve(link, self.note.path)

    def _line(self, link: Link, path: str) -> int | None:
        found = anchors(self.world.note(path)) if path else []
        anchor = Anchors(found).of(link)
        return anchor.line_start if anchor else None

    def _matches(self, link: Link, path: str, wanted: dict[str, Any]) -> None:
        facts = {
            "target": link.target, "alias": link.text, "heading": link.heading, "block": link.block,
            "embed": link.embed, "line": link.line, "path": path, "path_nfc": _nfc(path),
            "target_nfc": _nfc(link.target), "heading_line": self._line(link, path),
        }  # fmt: skip
        assert set(wanted) <= set(facts)
        assert {key: facts[key] for key in wanted} == wanted

    def expect_links(self, wanted: list[dict[str, Any]]) -> None:
        assert len(self.found) == len(wanted), self.found
        for (link, destination), item in zip(self.found, wanted, strict=True):
            self._matches(link, destination.path, item)

    expect_note_links = expect_links

    def expect_note_links_paths(self, paths: list[str]) -> None:
        assert {destination.path for _, destination in self.found} == set(paths)

    def expect_broken(self, targets: list[str]) -> None:
        broken = [
            link.target
            for link, destination in self.found
            if not destination.path or (link.heading and self._line(link, destination.path) is None)
        ]
        assert broken == targets

    def expect_backlinks(self, files: dict[str, list[str]]) -> None:
        for file, sources in files.items():
            assert self.world.links_into(file) == sorted(sources)


class Backlinks(OnFile):
    def expect_sources(self, sources: list[str]) -> None:
        assert self.world.links_into(self.call["file"]) == sorted(sources)


class Resolve(Op):
    asks = frozenset({"from", "target"})
    modifiers = frozenset({"or_ambiguous"})

    def ask(self) -> None:
        (self.link,) = read_note("x.md", f"[[{self.call['target']}]]".encode()).links
        self.destination = self._resolve(reverse=False)

    def _resolve(self, *, reverse: bool) -> Destination:
        return self.world.resolver(reverse=reverse).resolve(self.link, self.call["from"])

    def expect_path(self, path: str) -> None:
        either = self.expect.get("or_ambiguous")
        ambiguous = either is not None and sorted(self.destination.candidates) == sorted(either)
        assert self.destination.path == path or ambiguous

    def expect_heading_line(self, line: int) -> None:
        found = Anchors(anchors(self.world.note(self.destination.path))).find(self.link.heading)
        assert found is not None and found.line_start == line

    def expect_deterministic(self, wanted: bool) -> None:
        assert (self._resolve(reverse=True) == self.destination) is wanted


class Images(OnFile):
    def _path(self, image: Image) -> str | None:
        file = self.world.root / image.source
        return image.source if not image.source.startswith("data:") and file.is_file() else None

    def _kind(self, image: Image) -> str:
        if image.source.startswith("data:"):
            return "data"
        return "file" if self._path(image) else "missing"

    modifiers = frozenset({"may_also_list_lines"})

    def expect_images(self, wanted: list[dict[str, Any]]) -> None:
        allowed = self.expect.get("may_also_list_lines", [])
        found = [image for image in self.note.images if image.line not in allowed]
        assert len(found) == len(wanted), found
        for image, item in zip(found, wanted, strict=True):
            facts = {"path": self._path(image), "line": image.line, "kind": self._kind(image)}
            facts |= {"alt": image.alt, "source": image.source}
            assert {key: facts[key] for key in item} == item

    def expect_text_lacks_in_index(self, texts: list[str]) -> None:
        terms = self.world.ready().terms_of("\n".join(self.note.lines))
        for text in texts:
            assert not [term for term in terms if text.casefold() in term]
            assert not self.world.service.search(text, mode="lexical").hits


def _nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)
