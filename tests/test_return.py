"""Feedback gets home: what `grader return` writes for Moodle, for Canvas and as mails."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from classroom import TINY, Instant, hand_in, rows
from commandline import Cli
from handed_in import zipped

MOODLE = "One A_3001_assignsubmission_file", "Two B_3002_assignsubmission_file_"
CANVAS = "onea_7001_8001_scale.py", "twob_LATE_7002_8002_scale.py"


def names(out: Path) -> dict[tuple[str, int], tuple[str, list[str]]]:
    """Where the ledger says that each attempt lay in the download."""
    found = rows(out, "SELECT student, number, layout, names FROM origins")
    return {(student, number): (layout, json.loads(at)) for student, number, layout, at in found}


# --- where attempts lay ---------------------------------------------------------------------------


@pytest.mark.parametrize("is_zip", [False, True])
@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (
            [f"{name}/scale.py" for name in MOODLE],
            {("3001", 1): ("moodle", [MOODLE[0]]), ("3002", 1): ("moodle", [MOODLE[1]])},
        ),
        (
            [*CANVAS, "onea_7001_8003_scale-1.py"],
            {
                ("7001", 1): ("canvas", [CANVAS[0]]),
                ("7001", 2): ("canvas", ["onea_7001_8003_scale-1.py"]),
                ("7002", 1): ("canvas", [CANVAS[1]]),
            },
        ),
        (
            ["s001/scale.py", "s002.py"],
            {
                ("s001", 1): ("plain", ["s001"]),
                ("s002", 1): ("plain", ["s002.py"]),
            },
        ),
    ],
)
def test_the_ledger_knows_the_names_in_the_download(
    files: list[str], expected: object, is_zip: bool, cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    texts = dict.fromkeys(files, "# 6 points")
    folder = hand_in(tmp_path / "class", texts)
    given = zipped(tmp_path / "class.zip", texts) if is_zip else folder
    cli("batch", given, "--out", tmp_path / "out", "--course", TINY)
    assert names(tmp_path / "out") == expected


def test_merged_parts_know_the_names_in_the_download(
    cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    folder = hand_in(tmp_path / "class", {f"{name}/scale.py": "# 6 points" for name in MOODLE})
    out = tmp_path / "out"
    for part in ("1/2", "2/2"):
        options = "--seed", 5, "--shard", part, "--course", TINY
        cli("batch", folder, "--out", out, *options)
    cli("merge", out, "--course", TINY)
    assert names(out).keys() == {("3001", 1), ("3002", 1)}
