"""Sources in other encodings and large notebooks are read; what cannot be read costs no other."""

from __future__ import annotations

import base64
import json
import random
from pathlib import Path

import pytest
from classroom import hand_in, marks, report_of
from commandline import Cli
from handed_in import notebook, zipped

from grader.course.course import Course
from grader.submissions.code_files import MAX_NOTEBOOK_BYTES
from grader.submissions.notebook import LARGE

TINY = Path(__file__).parent / "tiny"
MIB = 1 << 20


@pytest.fixture(scope="module")
def solution(tiny_course: Course) -> str:
    return tiny_course["scale"].read("solution.py") + "name = 'Größe'\nassert len(name) == 5\n"


def graded(cli: Cli, tmp_path: Path) -> dict[str, str]:
    """Grade the class; return everybody's points."""
    hand_in(tmp_path / "class", {"s009/scale.py": "def scale(x, factor): return x * factor\n"})
    said = cli("batch", tmp_path / "class", "--out", tmp_path / "out", "--course", TINY)
    assert said.code in (0, 1), said
    points = marks(tmp_path / "out")
    assert float(points.pop("s009")) > 0
    return points


def flags(tmp_path: Path, student: str) -> str:
    return "; ".join(report_of(tmp_path / "out", student)["flags"])


@pytest.mark.slow
def test_a_source_is_read_in_its_own_encoding(tmp_path: Path, cli: Cli, solution: str) -> None:
    ways = {
        "s001": solution.encode("utf-16"),
        "s002": b"\xfe\xff" + solution.encode("utf-16-be"),
        "s003": solution.encode("utf-8-sig"),
        "s004": b"# -*- coding: latin-1 -*-\n" + solution.encode("latin-1"),
        "s005": b"#!/usr/bin/python\n# vim: set fileencoding=cp1252 :\n"
        + solution.encode("cp1252"),
        "s006": solution.replace("\n", "\r\n").encode("utf-16"),
        "s007": b"# coding: latin-1\n" + solution.encode("utf-8"),
    }
    for student, data in ways.items():
        hand_in(tmp_path / "class", {f"{student}/scale.py": ""})
        (tmp_path / f"class/{student}/scale.py").write_bytes(data)
    zipped(tmp_path / "class/s008.zip", {"scale.py": ways["s001"]})
    assert graded(cli, tmp_path) == dict.fromkeys([*ways, "s008"], "8")


def test_a_source_that_cannot_be_decoded_is_its_students_problem(
    tmp_path: Path, cli: Cli, solution: str
) -> None:
    ways = {
        "s001": (solution.encode("latin-1"), "`scale.py` is not UTF-8: byte 0xf6"),
        "s002": (b"# coding: klingon\n\xf6\n", "cannot be read as KLINGON: unknown encoding"),
        "s003": (b"# coding: hex\n\xf6\n", "cannot be read as HEX"),
        "s004": (b"\xff\xfe" + b"x\0=", "`scale.py` is not UTF-16"),
        "s005": (
            b"x = 1\n\n# coding: latin-1\n\xf6",
            "`scale.py` is not UTF-8: byte 0xf6 in line 4",
        ),
        "s006": (b"# coding: ascii\n\xf6", "`scale.py` is not ASCII: byte 0xf6 in line 2"),
        "s007": (
            b"# coding: unicode_escape\nx='\\ud800'\n# \xf6\n",
            "`scale.py` cannot be read as UNICODE_ESCAPE",
        ),
    }
    for student, (data, _) in ways.items():
        hand_in(tmp_path / "class", {f"{student}/scale.py": ""})
        (tmp_path / f"class/{student}/scale.py").write_bytes(data)
    assert graded(cli, tmp_path) == dict.fromkeys(ways, "0")
    for student, (_, why) in ways.items():
        assert why in flags(tmp_path, student)
        assert "save it as UTF-8 in your editor" in flags(tmp_path, student)


def with_outputs(text: str, size: int, **more: object) -> str:
    """Return a notebook whose one cell has shown pictures of so many bytes, which differ."""
    book = json.loads(notebook(text))
    picture = base64.b64encode(random.Random(1).randbytes(size * 3 // 4)).decode()
    output = {"output_type": "display_data", "metadata": {}, "data": {"image/png": picture}}
    book["cells"][0]["outputs"] = [{**output, **more}]
    return json.dumps(book)


@pytest.mark.slow
def test_a_notebook_may_be_large_because_of_its_outputs(
    tmp_path: Path, cli: Cli, solution: str
) -> None:
    large = with_outputs(solution, 12 * MIB)
    assert len(large) > LARGE
    hand_in(tmp_path / "class", {"s001/scale.ipynb": large})
    zipped(tmp_path / "class/s002.zip", {"hw/scale.ipynb": large})
    hand_in(tmp_path / "class", {"s003/scale.ipynb": with_outputs(solution, 9 * MIB, value=1e999)})
    text = json.loads(notebook(solution))
    text["cells"].append({"cell_type": "markdown", "metadata": {}, "source": "x" * 9 * MIB})
    hand_in(tmp_path / "class", {"s004/scale.ipynb": json.dumps(text)})
    assert graded(cli, tmp_path) == dict.fromkeys(("s001", "s002", "s003", "s004"), "8")
    assert "".join(flags(tmp_path, student) for student in ("s001", "s002", "s003")) == ""


@pytest.mark.slow
def test_a_notebook_beyond_the_limits_is_its_students_problem(
    tmp_path: Path, cli: Cli, solution: str
) -> None:
    hand_in(tmp_path / "class", {"s001/scale.ipynb": with_outputs(solution, MAX_NOTEBOOK_BYTES)})
    code = with_outputs(f"{solution}'''{'x' * 300_000}'''\n", 9 * MIB)
    hand_in(tmp_path / "class", {"s002/scale.ipynb": code})
    hand_in(tmp_path / "class", {"s003/scale.ipynb": "[" * 9 * MIB})
    hand_in(tmp_path / "class", {"s004/scale.ipynb": "[" + "0.5," * (7 * MIB) + "NaN]"})
    assert graded(cli, tmp_path) == dict.fromkeys(("s001", "s002", "s003", "s004"), "0")
    assert "`scale.ipynb` is larger than 32 MiB" in flags(tmp_path, "s001")
    assert "holds more than 256 KiB of code" in flags(tmp_path, "s002")
    assert "could not be read" in flags(tmp_path, "s003")
    assert "could not be read" in flags(tmp_path, "s004")
