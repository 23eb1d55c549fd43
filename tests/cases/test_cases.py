"""Every line of the ``.jsonl`` files in this folder is a case; see case_run.py for what they may say."""

import json
import os
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from case_run import OPS, SESSIONS, run

import searchsvc

HERE = Path(__file__).parent
NOBODY = 65534


def _cases() -> list[Any]:
    text = "\n".join(file.read_text(encoding="utf-8") for file in sorted(HERE.glob("*.jsonl")))
    cases = [json.loads(line) for line in text.split("\n") if line]
    apart = [case for case in cases if case["call"]["op"] in SESSIONS or case["area"] == "providers"]
    return [pytest.param(case, id=case["id"]) for case in cases if case not in apart]


@pytest.mark.parametrize("case", _cases())
def test_the_product_does_what_the_case_expects(case: dict[str, Any], tmp_path: Path) -> None:
    if "needs" in case["expect"]:
        _run_without_privileges(case, tmp_path)
        return
    run(case, tmp_path)
    repeat = dict(case["call"].get("repeat", {}))
    seeds, orders = repeat.pop("hash_seeds", [0]), repeat.pop("file_orders", ["sorted"])
    assert not repeat and set(orders) <= {"sorted", "reversed"}
    if "repeat" in case["call"]:
        for seed, order in product(seeds, orders):
            _run_apart({"case": case, "reverse": order == "reversed"}, seed=seed)


def _run_without_privileges(case: dict[str, Any], tmp_path: Path) -> None:
    assert case["expect"]["needs"] == "not running as root"
    if os.name != "posix":
        pytest.skip("needs POSIX permissions")
    if os.geteuid() == 0:
        _run_apart({"case": case, "user": NOBODY})
    else:
        run(case, tmp_path)


def _run_apart(order: dict[str, Any], *, seed: int = 0) -> None:
    package = str(Path(searchsvc.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": package, "PYTHONHASHSEED": str(seed)}
    done = subprocess.run(
        [sys.executable, "-B", "-W", "error", str(HERE / "case_run.py")],
        input=json.dumps(order), env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_every_case_has_an_id_of_its_own() -> None:
    ids = [param.id for param in _cases()]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("kind", OPS)
def test_an_unknown_key_in_a_case_is_a_failure_not_a_pass(kind: str, tmp_path: Path) -> None:
    files = {"a.md": "# A\n"}
    for case in (
        {"files": files, "call": {"op": kind, "colour": "red"}, "expect": {}},
        {"files": files, "call": {"op": kind}, "expect": {"colour": "red"}},
        {"files": files, "call": {"op": kind}, "expect": {}, "colour": "red"},
    ):
        with pytest.raises(AssertionError, match="adapter does not know"):
            run(case, _fresh(tmp_path))


def _fresh(folder: Path) -> Path:
    made = folder / str(len(list(folder.iterdir())))
    made.mkdir()
    return made
