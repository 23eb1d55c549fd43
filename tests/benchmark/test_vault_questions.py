"""The questions of benchmark/vault, held against the notes that they are asked of."""

import ast
import importlib.util
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from searchsvc.tokens import STOP_WORDS, Tokenizer

VAULT = Path(__file__).parents[2] / "benchmark" / "vault"
NOTES = VAULT / "notes"
Question = dict[str, Any]

KINDS = {
    "literal", "paraphrase", "cross-document", "wikilink",
    "table", "image-caption", "multilingual", "unanswerable",
}  # fmt: skip
LANGUAGES = {"en", "de", "es", "fr", "pt", "zh", "ja"}
FORMATS = {"Str", "Int", "Float", "List", "None"}
FIELDS = {
    "id": str, "kind": str, "language": str, "scope": str, "documents": list, "question": str,
    "answer": str, "answer_format": str, "evidence": list, "tags": list,
}  # fmt: skip
EVIDENCE_FIELDS = {"path": str, "line_start": int, "line_end": int, "quote": str}
TAG = re.compile(r"arithmetic|from:.+\.md|evidence:[a-z]{2}")
REPHRASED = {"table-15"}
"""Questions whose answer does not stand in the quoted lines: it is the difference of two cells."""
OTHER_LANGUAGES = {
    "procedures/tauchordnung.md": "de",
    "logs/tagebuch-winterwache.md": "de",
    "instruments/correntimetro-calibracion.md": "es",
    "kitchen/soupe-de-crabe-fr.md": "fr",
    "field-guide/anemonas-da-baia.md": "pt",
    "people/visiting-scholars-zh.md": "zh",
    "field-guide/plankton-zukan-ja.md": "ja",
}

WORD = re.compile(r"[^\W_]+(?:['’.,-][^\W_]+)*")
IDEOGRAPH = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")
WIKILINK = re.compile(r"(!?)\[\[([^\]|#]*)(?:#([^\]|]*))?(?:\|[^\]]*)?\]\]")
MARKDOWN_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:)([^)\s]+)\)")
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
TABLE = re.compile(r"^\|(?: ?-+ ?\|)+$", re.MULTILINE)


def read(path: str) -> str:
    return (NOTES / path).read_text(encoding="utf-8")


def body(path: str) -> str:
    """Return a note without its front matter."""
    return re.sub(r"\A---\n.*?\n---\n", "", read(path), flags=re.DOTALL)


def collapsed(text: str) -> str:
    return " ".join(text.split())


PATHS = sorted(path.relative_to(NOTES).as_posix() for path in NOTES.rglob("*.md"))
BY_STEM = {Path(path).stem: path for path in PATHS}
QUESTIONS: list[Question] = [
    json.loads(line) for line in (VAULT / "questions.jsonl").read_text(encoding="utf-8").splitlines()
]
EVIDENCE = [pytest.param(q, e, id=q["id"]) for q in QUESTIONS for e in q["evidence"]]


def of_kind(*kinds: str) -> list[Any]:
    return [pytest.param(q, id=q["id"]) for q in QUESTIONS if q["kind"] in kinds]


def quoted_lines(evidence: dict[str, Any]) -> list[str]:
    return read(evidence["path"]).split("\n")[evidence["line_start"] - 1 : evidence["line_end"]]


def paragraph(evidence: dict[str, Any]) -> str:
    """Return the lines of evidence with those around them, up to the next blank ones."""
    lines = read(evidence["path"]).split("\n")
    first, last = evidence["line_start"] - 1, evidence["line_end"] - 1
    while first and lines[first - 1].strip():
        first -= 1
    while last + 1 < len(lines) and lines[last + 1].strip():
        last += 1
    return "\n".join(lines[first : last + 1])


def prose(path: str) -> str:
    """Return a note without code, in which brackets are no links."""
    return CODE.sub(" ", read(path))


def links_of(path: str) -> set[str]:
    """Return the notes and images that a note links to; of names that lead nowhere, the names."""
    text = prose(path)
    targets = {BY_STEM.get(name, name) for _, name, _ in WIKILINK.findall(text) if name}
    for _, _, target in MARKDOWN_LINK.findall(text):
        file = (NOTES / path).parent / target.partition("#")[0]
        inside = file.resolve().is_relative_to(NOTES.resolve())
        targets.add(file.resolve().relative_to(NOTES.resolve()).as_posix() if inside else target)
    return targets


# Questions


def test_ids_are_unique_and_say_the_kind() -> None:
    assert len({q["id"] for q in QUESTIONS}) == len(QUESTIONS)
    assert [q["id"] for q in QUESTIONS if not re.fullmatch(re.escape(q["kind"]) + r"-\d\d", q["id"])] == []
    assert len({q["question"] for q in QUESTIONS}) == len(QUESTIONS)


def test_every_kind_has_a_dozen_questions() -> None:
    counts = Counter(q["kind"] for q in QUESTIONS)
    assert set(counts) == KINDS
    assert min(counts.values()) >= 12 and len(QUESTIONS) >= 96


def test_the_readme_has_the_counts() -> None:
    text = (VAULT / "README.md").read_text(encoding="utf-8")
    for kind, number in Counter(q["kind"] for q in QUESTIONS).items():
        assert f"| {kind} | {number} |" in text
    assert f"has {len(PATHS)} notes" in text
    assert f"The {len(list((NOTES / 'images').iterdir()))} images" in text


@pytest.mark.parametrize("question", of_kind(*KINDS))
def test_fields(question: Question) -> None:
    assert {name: type(question.get(name)) for name in FIELDS} == FIELDS
    assert set(question) - set(FIELDS) <= {"names"}
    assert question["language"] in LANGUAGES and question["answer_format"] in FORMATS
    assert all(TAG.fullmatch(tag) for tag in question["tags"])
    assert question["question"].rstrip().endswith(("?", "？", "。"))
    for evidence in question["evidence"]:
        assert {name: type(value) for name, value in evidence.items()} == EVIDENCE_FIELDS
    if question["scope"] == "document":
        assert len(question["documents"]) == 1 and question["documents"][0] in PATHS
        assert all(evidence["path"] in question["documents"] for evidence in question["evidence"])
    else:
        assert question["scope"] == "corpus" and question["documents"] == []


@pytest.mark.parametrize("question", of_kind(*KINDS))
def test_answers_are_of_their_format(question: Question) -> None:
    answer, kind = question["answer"], question["answer_format"]
    assert (answer == "Not answerable") == (kind == "None") == (question["kind"] == "unanswerable")
    if kind == "Int":
        assert str(int(answer)) == answer
    if kind == "Float":
        assert "." in answer and float(answer) is not None
    if kind == "List":
        items = ast.literal_eval(answer)
        assert len(items) > 1 and all(isinstance(item, str) and item for item in items)


@pytest.mark.parametrize("question", of_kind(*KINDS))
def test_only_the_unanswerable_have_no_evidence(question: Question) -> None:
    assert bool(question["evidence"]) == (question["kind"] != "unanswerable")


@pytest.mark.parametrize(("question", "evidence"), EVIDENCE)
def test_quotes_stand_within_their_lines(question: Question, evidence: dict[str, Any]) -> None:
    assert evidence["path"] in PATHS
    lines = quoted_lines(evidence)
    assert len(lines) == evidence["line_end"] - evidence["line_start"] + 1
    quote = collapsed(evidence["quote"])
    assert quote in collapsed("\n".join(lines))
    assert quote not in collapsed("\n".join(lines[1:])) and quote not in collapsed("\n".join(lines[:-1]))


@pytest.mark.parametrize("question", of_kind("literal", "table", "image-caption"))
def test_answers_stand_in_the_quoted_lines(question: Question) -> None:
    def plain(text: str) -> str:
        return re.sub(r"(?<=\d),(?=\d{3})", "", collapsed(text).replace("*", "").casefold())

    answer = question["answer"]
    wanted = ast.literal_eval(answer) if question["answer_format"] == "List" else [answer]
    text = plain("\n".join(line for e in question["evidence"] for line in quoted_lines(e)))
    found = all(re.search(rf"(?<![\w.]){re.escape(plain(item))}(?!\w)", text) for item in wanted)
    assert found == (question["id"] not in REPHRASED)


@pytest.mark.parametrize("question", of_kind("paraphrase"))
def test_paraphrases_share_no_word_with_the_paragraph(question: Question) -> None:
    tokenizer = Tokenizer()
    names = set(tokenizer.terms(" ".join(question.get("names", []))))
    asked = set(tokenizer.terms(question["question"])) - STOP_WORDS - names
    assert len(asked) >= 4
    for evidence in question["evidence"]:
        assert asked & set(tokenizer.terms(paragraph(evidence))) == set()


@pytest.mark.parametrize("question", of_kind("cross-document"))
def test_cross_document_questions_need_two_notes(question: Question) -> None:
    assert 2 <= len({evidence["path"] for evidence in question["evidence"]}) <= 3


@pytest.mark.parametrize("question", of_kind("wikilink"))
def test_the_note_that_is_named_links_to_the_answer(question: Question) -> None:
    (source,) = [tag.removeprefix("from:") for tag in question["tags"] if tag.startswith("from:")]
    (evidence,) = question["evidence"]
    assert source != evidence["path"] and evidence["path"] in links_of(source)


@pytest.mark.parametrize("question", of_kind("table"))
def test_evidence_of_tables_is_rows(question: Question) -> None:
    assert all(line.startswith("|") for e in question["evidence"] for line in quoted_lines(e))


@pytest.mark.parametrize("question", of_kind("image-caption"))
def test_evidence_of_images_is_an_image_or_the_caption_beneath(question: Question) -> None:
    for evidence in question["evidence"]:
        above = read(evidence["path"]).split("\n")[: evidence["line_start"] - 1]
        (line,) = quoted_lines(evidence)
        is_caption = line.startswith("*") and any(near.startswith("![") for near in above[-2:])
        assert line.startswith("![") or is_caption


@pytest.mark.parametrize("question", of_kind("multilingual"))
def test_multilingual_questions_cross_or_leave_english(question: Question) -> None:
    (tag,) = [tag for tag in question["tags"] if tag.startswith("evidence:")]
    (evidence,) = question["evidence"]
    language = OTHER_LANGUAGES.get(evidence["path"], "en")
    assert tag == f"evidence:{language}" and {language, question["language"]} != {"en"}


# Notes


def test_there_are_enough_notes_and_they_differ_in_length() -> None:
    lengths = {path: len(WORD.findall(body(path))) for path in PATHS}
    characters = {path: len(IDEOGRAPH.findall(body(path))) for path in PATHS}
    assert len(PATHS) >= 36
    assert sum(length > 1500 for length in lengths.values()) >= 8
    assert [path for path in PATHS if lengths[path] > 2500] == []
    assert [path for path in PATHS if lengths[path] < 250 and characters[path] < 500] == []


def test_notes_have_the_forms_that_the_readme_promises() -> None:
    texts = [read(path) for path in PATHS]
    assert len({path.split("/")[0] for path in PATHS if "/" in path}) >= 5
    assert sum(len(TABLE.findall(text)) for text in texts) >= 12
    assert sum("\n```" in text for text in texts) >= 5
    assert sum(bool(re.search(r"^!\[[^\]]+\]\(", text, re.MULTILINE)) for text in texts) >= 6
    assert any(re.search(r"^#### ", text, re.MULTILINE) for text in texts)
    assert any(embed for text in texts for embed, name, _ in WIKILINK.findall(text) if name in BY_STEM)


def test_front_matter_is_yaml_and_on_half_of_the_notes() -> None:
    found = {}
    for path in PATHS:
        match = re.match(r"---\n(.*?)\n---\n", read(path), re.DOTALL)
        if match:
            found[path] = yaml.safe_load(match.group(1))
    assert len(found) >= len(PATHS) / 2
    assert all(isinstance(fields, dict) for fields in found.values())
    assert {p: f["lang"] for p, f in found.items() if "lang" in f} == OTHER_LANGUAGES


@pytest.mark.parametrize("path", PATHS)
def test_links_lead_somewhere(path: str) -> None:
    assert [target for target in links_of(path) if target not in PATHS and not is_image(target)] == []
    for _, name, heading in WIKILINK.findall(prose(path)):
        if heading:
            assert heading in headings(BY_STEM[name] if name else path)


def headings(path: str) -> list[str]:
    return re.findall(r"^#{1,6} (.+)$", re.sub(r"^```.*?^```$", "", read(path), flags=re.M | re.S), re.M)


def is_image(target: str) -> bool:
    return (NOTES / target).is_file() or (NOTES / "images" / target).is_file()


def test_every_image_is_small_and_shown_with_a_caption() -> None:
    images = {file.name for file in (NOTES / "images").iterdir()}
    shown = set()
    for path in PATHS:
        for match in re.finditer(r"^!\[([^\]]+)\]\(\.\./images/([^)]+)\)\n\n(\*[^\n]+)$", read(path), re.M):
            shown.add(match.group(2))
    assert shown == images
    assert [name for name in images if (NOTES / "images" / name).stat().st_size > 30_000] == []


def test_the_script_draws_the_images_again(tmp_path: Path) -> None:
    """Pixels are compared, since another version of Pillow may pack the same ones otherwise."""
    image = pytest.importorskip("PIL.Image")
    spec = importlib.util.spec_from_file_location("draw_images", VAULT / "draw_images.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    drawn = module.draw(tmp_path)
    assert {file.name for file in drawn} == {file.name for file in (NOTES / "images").iterdir()}
    for file in drawn:
        with image.open(file) as new, image.open(NOTES / "images" / file.name) as kept:
            assert new.size == kept.size and new.tobytes() == kept.tobytes(), file.name


def test_the_licence_is_cc0() -> None:
    text = (VAULT / "LICENSE").read_text(encoding="utf-8")
    assert "CC0 1.0" in text and "https://creativecommons.org/publicdomain/zero/1.0/" in text
