"""The page of figures: it stands alone, its pictures show something, other files are refused in one line."""

import json
import re

import pytest

pytest.importorskip("matplotlib", reason="pictures need matplotlib")
from PIL import Image  # noqa: E402

from benchmark.__main__ import main as benchmark  # noqa: E402
from benchmark.pages import main  # noqa: E402


def quality():
    row = {"recall5": 0.5, "recall": 0.6, "mrr": 0.4, "success": 0.0, "document_ndcg": 0.7}
    queries = [{"id": f"q{n}", "kind": "question", "ndcg": n / 12, **row} for n in range(12)]
    runs = [
        {"set": "owls & <others>", "mode": mode, "profile": "", "queries": queries}
        for mode in ("lexical", "hybrid")
    ]
    return {"machine": {}, "runs": runs}


def speed():
    left_out = {"name": "slow", "p50": None, "skipped": "it would not end"}
    rows = [
        {"name": name, "p50": 1.5, "p95": 2.0, "wall_p50": 1.6, "wall_p95": 2.1}
        for name in ("searchsvc", "another")
    ]
    sizes = [
        {"sections": n, "words": [*rows, left_out], "vectors": rows, "both": rows[:1]} for n in (1000, 10_000)
    ]
    return {"sizes": sizes}


def evidence():
    figures = {"recall": [0.2, 0.4, 0.6], "spent": [1, 2, 3], "first": 10, "all": None}
    questions = [
        {
            "id": f"q{n}", "kind": "literal" if n % 2 else "paraphrase", "tags": [], "cluster": f"d{n % 3}",
            "answerable": True, "units": 1, "policies": {p: figures for p in ("grep-a", "hybrid", "oracle")},
        }
        for n in range(8)
    ]  # fmt: skip
    return {"runs": [{"name": "vault", "grep": "grep-a", "policies": ["grep-a", "hybrid", "oracle"],
                      "budgets": [1000, 2000, 4000], "questions": questions}]}  # fmt: skip


def study():
    difference = {"mean": 0.1, "low": 0.02, "high": 0.2, "count": 9, "clusters": 6, "detectable": 0.1,
                  "note": "", "wins": 3, "ties": 5, "losses": 1}  # fmt: skip
    arm = {"all": {"score": 0.5, "questions": 9}, "kinds": {}, "tags": {}}
    differences = {"score": difference, "seconds": difference | {"mean": 40.0}}
    arms = {"files": arm, "files+searchsvc": arm}
    groups = {"all": differences, "kinds": {}, "tags": {}}
    return {"complete": False, "arms": arms, "differences": groups}


PARTS = {"quality": quality, "speed": speed, "evidence": evidence, "ab": study}


def write(tmp_path, **contents):
    options = []
    for name, content in contents.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
        options += [f"--{name}", str(tmp_path / f"{name}.json")]
    return [*options, "--out", str(tmp_path / "out")]


def test_a_page_of_everything_stands_alone(tmp_path):
    assert main(write(tmp_path, **{name: make() for name, make in PARTS.items()})) == 0
    page = (tmp_path / "out/report.html").read_text()
    assert page.count("<svg") == 4
    assert not re.search(r"<(img|script|link)\b", page)
    assert "owls &amp; &lt;others&gt;" in page
    assert "The run is not complete." in page
    assert "+40.000" in page
    assert "left out: it would not end" in page
    for name in ("quality", "latency", "evidence-vault", "ab"):
        picture = Image.open(tmp_path / f"out/{name}.png").convert("RGB")
        assert picture.width > 500
        assert len(picture.getcolors(1_000_000)) > 20, f"{name} is blank"


def test_the_same_figures_make_the_same_page(tmp_path):
    options = write(tmp_path, evidence=evidence())
    assert main(options) == 0
    first = (tmp_path / "out/report.html").read_bytes()
    assert main(options) == 0
    assert (tmp_path / "out/report.html").read_bytes() == first


@pytest.mark.parametrize("name", PARTS)
def test_another_file_is_refused_in_one_line(tmp_path, capsys, name):
    assert main(write(tmp_path, **{name: {"other": []}})) == 2
    assert re.fullmatch(rf"error: .*{name}\.json: not what that option takes.*\n", capsys.readouterr().err)


def test_nothing_to_report_is_said(tmp_path, capsys):
    assert main(["--out", str(tmp_path)]) == 2
    assert "give at least one file" in capsys.readouterr().err


def test_the_commands_are_listed_and_an_unknown_one_is_wrong_usage(capsys):
    assert benchmark(["--help"]) == 0
    assert "quality" in capsys.readouterr().out
    assert benchmark(["nothing"]) == 2
    assert benchmark(["ab"]) == 2
    assert "evidence" in capsys.readouterr().err
