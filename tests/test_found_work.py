"""Work that lies where nobody looks is found: used if there is no doubt, and flagged."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from classroom import Instant, hand_in, marks, report_of, run
from commandline import Cli
from handed_in import notebook, zipped

from grader.course.course import Course
from grader.course.stubs import make_stub

pytestmark = pytest.mark.in_turn

SIX = "# 6 points\ndef scale(x, factor):\n    return x\n"
TWO = "# 2 points\ndef scale(x, factor):\n    return 0\n"
FENCED = f"An example:\n\n```python\n{TWO}```\n"
Batch = Callable[[], dict[str, str]]


@pytest.fixture
def batch(cli: Cli, instant: Instant, tmp_path: Path) -> Batch:
    """Grade the folder `class` and return everybody's points; nothing affects s009."""

    def grading() -> dict[str, str]:
        hand_in(tmp_path / "class", {"s009/scale.py": "# 5 points\n"})
        assert run(cli, tmp_path).code in (0, 1)
        assert flags(tmp_path, "s009") == []
        points = marks(tmp_path / "out")
        assert points.pop("s009") == "5"
        return points

    return grading


@pytest.fixture
def stub(tiny_course: Course) -> str:
    return make_stub(tiny_course["scale"])


def flags(tmp_path: Path, student: str) -> list[str]:
    return [str(flag) for flag in report_of(tmp_path / "out", student)["flags"]]


def cells(*cells: tuple[str, str], **more: Any) -> str:
    """Return a notebook of these cells, each a kind and a source."""
    made = [
        {"cell_type": kind, "metadata": {}, "source": source, "outputs": []}
        for kind, source in cells
    ]
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": made} | more)


# --- notebooks ------------------------------------------------------------------------------------


def test_a_definition_in_a_cell_that_is_no_code_is_used_if_no_other_cell_has_one(
    tmp_path: Path, batch: Batch, stub: str
) -> None:
    here = {
        "s001": cells(("code", "import torch"), ("markdown", SIX)),
        "s002": cells(("raw", SIX), ("code", stub), ("markdown", "# Scale")),
        "s003": cells(("raw", TWO), ("code", SIX)),
        "s004": cells(("raw", TWO), ("markdown", SIX), ("code", stub)),
        "s005": cells(("markdown", "def scale(x, factor) returns:\n\nx"), ("code", "# 0 points")),
        "s006": cells(("markdown", FENCED), ("code", SIX)),
        "s007": cells(("markdown", FENCED), ("code", "# 0 points\nx = 1")),
    }
    hand_in(tmp_path / "class", {f"{who}/scale.ipynb": text for who, text in here.items()})
    points = batch()
    assert (points["s001"], points["s002"], points["s003"], points["s006"]) == ("6",) * 4
    used = "cell was used as code, because it alone defines `scale`; needs review"
    assert flags(tmp_path, "s001") == [f"`scale.ipynb`: a Markdown {used}"]
    stub_again = (
        "`scale.ipynb`: cell 2 has the stub of `scale` again, which was left out; needs review"
    )
    assert flags(tmp_path, "s002") == [f"`scale.ipynb`: a Raw {used}", stub_again]
    assert flags(tmp_path, "s004") == [
        "`scale.ipynb`: several cells that are no code define `scale`, so none was used; "
        "needs review"
    ]
    assert flags(tmp_path, "s005") == [
        "`scale.ipynb`: a cell that is no code defines `scale`, but is no valid Python either; "
        "needs review"
    ]
    for student in ("s003", "s006", "s007"):
        assert flags(tmp_path, student) == []


CLASS = """# 6 points
def scale(x, factor): return x
class Scale:
    def __init__(self): pass
"""
METHOD = "    def forward(self, x):\n        return x\n"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (CLASS, METHOD),
        (CLASS + "    def forward(self, x):\n        y = x\n", "        return y\n"),
        (CLASS + "    def forward(self, x):\n", "\n        y = x\n\n        return y\n"),
    ],
)
def test_a_class_that_is_split_over_two_cells_is_joined(
    first: str, second: str, tmp_path: Path, batch: Batch, cli: Cli
) -> None:
    hand_in(tmp_path / "class", {"s001/scale.ipynb": notebook("import torch", first, "", second)})
    assert batch() == {"s001": "6"}
    assert flags(tmp_path, "s001") == [
        "`scale.ipynb`: cell 4 was joined with the one before, whose block goes on; needs review"
    ]


@pytest.mark.slow
def test_a_joined_class_runs_as_one(tmp_path: Path, cli: Cli, tiny_solution: str) -> None:
    head, method, rest = tiny_solution.partition("    def forward")
    assert method
    (tmp_path / "scale.ipynb").write_text(notebook(head, method + rest, "scale(1, 2)"))
    said = cli("check", tmp_path, "--course", Path(__file__).parent / "tiny", "--format", "json")
    assert json.loads(said.out)["points"] == 8


@pytest.mark.parametrize(
    "second",
    ["    x = 1\n    print(x)\n", "def forward(self, x): return x\n", "    def f(x): return x\n"],
)
def test_an_indented_cell_that_can_stand_alone_is_not_joined(
    second: str, tmp_path: Path, batch: Batch
) -> None:
    hand_in(tmp_path / "class", {"s001/scale.ipynb": notebook(CLASS, second)})
    assert batch() == {"s001": "6"}
    assert flags(tmp_path, "s001") == []


def test_a_cell_that_does_not_parse_is_named_and_flagged_if_it_may_count(
    tmp_path: Path, batch: Batch
) -> None:
    hand_in(tmp_path / "class", {"s001/scale.ipynb": notebook(SIX, "def helper(:\n  pass")})
    hand_in(tmp_path / "class", {"s002/scale.ipynb": notebook(SIX, "scale(1,")})
    hand_in(tmp_path / "class", {"s003/scale.ipynb": notebook("x = = 1", SIX)})
    assert set(batch().values()) == {"6"}
    says = "`scale.ipynb`: cell {} is no valid Python and was left out"
    flag = f"{says.format(2)}; needs review"
    assert flags(tmp_path, "s001") == flags(tmp_path, "s002") == [flag]
    assert flags(tmp_path, "s003") == []
    assert says.format(1) in report_of(tmp_path / "out", "s003")["notes"]


def test_a_definition_that_is_given_twice_is_flagged(
    tmp_path: Path, batch: Batch, stub: str
) -> None:
    same = SIX.replace("    return x", "    # the product\n    return  x")
    builds = "class Scale:\n    pass\n", "class Scale(Scale):\n    y = 1\n"
    here = {
        "s001": notebook(TWO.replace("# 2 points", ""), "x = 1", SIX),
        "s002": notebook(SIX, "x = 1", SIX),
        "s003": notebook(stub, SIX),
        "s004": notebook(SIX, stub),
        "s005": notebook(SIX, *builds, "scale = print(scale)"),
    }
    assert same != SIX
    hand_in(tmp_path / "class", {f"{who}/scale.ipynb": text for who, text in here.items()})
    points = batch()
    assert [points[who] for who in ("s001", "s002", "s003", "s004", "s005")] == ["6"] * 5
    assert flags(tmp_path, "s001") == [
        "`scale.ipynb`: `scale` is defined in 2 ways; cell 3 counts as the last; needs review"
    ]
    assert flags(tmp_path, "s004") == [
        "`scale.ipynb`: cell 2 has the stub of `scale` again, which was left out; needs review"
    ]
    for student in ("s002", "s003", "s005"):
        assert flags(tmp_path, student) == []


def test_a_variable_that_a_later_cell_sets_again_is_flagged(tmp_path: Path, batch: Batch) -> None:
    """It counts with its last value, with which the student may never have run the function."""
    reads = SIX.replace("return x", "return x * ONE")
    here = {
        "s001": notebook("ONE = 1", reads, "# another exercise\nONE = 3"),
        "s002": notebook("ONE = 1", reads, "ONE = 1  # again"),
        "s003": notebook("ONE = 1\nONE = 3", reads),
        "s004": notebook("x = 1", SIX, "x = 3"),
        "s005": notebook(reads, "ONE = 1", "ONE = 3"),
    }
    hand_in(tmp_path / "class", {f"{who}/scale.ipynb": text for who, text in here.items()})
    assert set(batch().values()) == {"6"}
    says = "`scale.ipynb`: `ONE`, which `scale` reads, is set again in cell 3; needs review"
    assert flags(tmp_path, "s001") == [says]
    for student in ("s002", "s003", "s004", "s005"):
        assert flags(tmp_path, student) == []


def test_a_notebook_without_its_version_is_read(tmp_path: Path, batch: Batch) -> None:
    made = json.loads(notebook(SIX))
    del made["nbformat"]
    old = {"worksheets": [{"cells": [{"cell_type": "code", "input": SIX, "outputs": []}]}]}
    hand_in(tmp_path / "class", {"s001/scale.ipynb": json.dumps(made)})
    hand_in(tmp_path / "class", {"s002/scale.ipynb": json.dumps(old)})
    assert batch() == {"s001": "6", "s002": "6"}
    why = "the key `nbformat` is missing, so the version of its format was guessed"
    for student in ("s001", "s002"):
        assert flags(tmp_path, student) == [f"`scale.ipynb`: {why}; needs review"]


# --- files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["scale.py.txt", "scale.ipynb.txt", "Scale.IPYNB.json"])
def test_a_suffix_that_an_editor_or_a_browser_added_is_no_obstacle(
    name: str, tmp_path: Path, batch: Batch, stub: str
) -> None:
    text = notebook(SIX) if "ipynb" in name.lower() else SIX
    hand_in(tmp_path / "class", {f"s001/{name}": text, "s001/notes.txt": "x"})
    hand_in(tmp_path / "class", {f"s002/{name}": text, "s002/scale.py": stub})
    hand_in(tmp_path / "class", {f"s003/{name}": text, "s003/scale.py": TWO})
    zipped(tmp_path / "class/s004.zip", {f"work/{name}": text})
    hand_in(tmp_path / "class", {"s005.py.txt": SIX})
    points = batch()
    assert points == {**dict.fromkeys(("s001", "s002", "s004", "s005"), "6"), "s003": "2"}
    near = "was used for scale because its name nearly fits; needs review"
    assert flags(tmp_path, "s001") == flags(tmp_path, "s002") == [f"`{name}` {near}"]
    assert flags(tmp_path, "s004") == [f"`work/{name}` {near}"]
    (flag,) = flags(tmp_path, "s003")
    assert flag.startswith(f"`{name}` is not an exercise file and was left out")


def test_an_added_suffix_is_no_obstacle_on_a_platform(
    cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    names = {
        "canvas": "do_501_12_scale.py-1.txt",
        "moodle": "Do_501_assignsubmission_file_scale.py.txt",
        "folders of moodle": "Do_501_assignsubmission_file_/scale.py.txt",
    }
    for place, name in names.items():
        hand_in(tmp_path / place / "class", {name: SIX})
        assert run(cli, tmp_path / place).code == 1
        assert marks(tmp_path / place / "out") == {"501": "6"}


POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a21\nsize 12345\n"


@pytest.mark.parametrize("name", ["scale.py", "scale.ipynb"])
def test_a_pointer_of_git_lfs_is_named_as_what_it_is(
    name: str, tmp_path: Path, batch: Batch
) -> None:
    hand_in(tmp_path / "class", {f"s001/{name}": POINTER})
    hand_in(tmp_path / "class", {f"s002/{name}": POINTER, "s002/old/scale.py": SIX})
    assert batch() == {"s001": "0", "s002": "6"}
    why = f"`{name}` is a pointer of Git LFS, not the file itself; run `git lfs pull` in the clone"
    assert flags(tmp_path, "s001") == [f"could not be read: {why}"]
    assert flags(tmp_path, "s002")[0].startswith(why)
