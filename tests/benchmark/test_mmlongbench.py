"""MMLongBench-Doc's files become a corpus and questions whose evidence lies on the right pages."""

import json

import pytest
from reportlab.pdfgen.canvas import Canvas

from benchmark.study.mmlongbench import main
from benchmark.study.questions import read_questions


@pytest.fixture
def source(tmp_path):
    canvas = Canvas(str(tmp_path / "report.pdf"))
    for page in range(1, 5):
        canvas.setFont("Helvetica", 12)
        canvas.drawString(72, 700, f"On page {page} there are {page * 10} herons in the reeds near the lake.")
        canvas.showPage()
    canvas.save()
    samples = [
        {
            "doc_id": "report.pdf", "doc_type": "Research report", "answer": str(page * 10),
            "question": f"How many herons on page {page}?", "evidence_pages": f"[{page}]",
            "evidence_sources": "['Pure-text (Plain-text)']", "answer_format": "Int",
        }
        for page in range(1, 4)
    ]  # fmt: skip
    samples.append(
        {
            "doc_id": "report.pdf", "question": "How many cranes?", "answer": "Not answerable",
            "evidence_pages": "[]", "evidence_sources": "[]", "answer_format": "None",
        }
    )  # fmt: skip
    samples.append({"doc_id": "gone.pdf", "question": "?", "answer": "1", "answer_format": "Int"})
    (tmp_path / "samples.json").write_text(json.dumps(samples))
    return tmp_path


def run(source, *more):
    out = source / "out"
    code = main(["--samples", str(source / "samples.json"), "--pdfs", str(source), "--out", str(out), *more])
    assert code == 0
    return out, read_questions(out / "questions.jsonl")


def test_evidence_lies_between_the_marks_of_its_page(source, capsys):
    out, questions = run(source)
    assert [q.kind for q in questions] == ["Pure-text (Plain-text)"] * 3 + ["unanswerable"]
    for question in questions[:3]:
        (evidence,) = question.evidence
        lines = (out / "corpus" / evidence.path).read_text().split("\n")
        shown = "\n".join(lines[evidence.line_start - 1 : evidence.line_end])
        assert f"{question.answer} herons" in shown
        assert shown.count("herons") == 1
        assert question.scope == "document"
        assert question.documents == (evidence.path,)
    assert not questions[3].is_answerable
    assert questions[3].evidence == ()
    assert "gone.pdf is not in" in capsys.readouterr().err


def test_a_tier_holds_as_many_of_each_source_as_asked_for_and_always_the_same(source):
    _, first = run(source, "--per-source", "1")
    assert sorted(q.kind for q in first) == ["Pure-text (Plain-text)", "unanswerable"]
    assert run(source, "--per-source", "1")[1] == first


def test_a_name_that_leads_out_of_the_folder_of_pdfs_is_not_followed(source, capsys):
    samples = [json.loads((source / "samples.json").read_text())[0] | {"doc_id": "../report.pdf"}]
    (source / "samples.json").write_text(json.dumps(samples))
    (source / "pdfs").mkdir()
    (source / "pdfs" / "report.pdf").write_bytes((source / "report.pdf").read_bytes())
    given = ["--samples", str(source / "samples.json"), "--pdfs", str(source / "pdfs")]
    assert main([*given, "--out", str(source / "out")]) == 0
    assert "0 of 1 questions on 0 documents" in capsys.readouterr().out


def test_another_file_is_refused_in_one_line(tmp_path, capsys):
    (tmp_path / "samples.json").write_text("{}1")
    assert main(["--samples", str(tmp_path / "samples.json"), "--pdfs", ".", "--out", str(tmp_path)]) == 2
    assert "cannot be read as samples.json" in capsys.readouterr().err
