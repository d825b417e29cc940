"""Names stand beside ids wherever a person reads."""

from __future__ import annotations

from pathlib import Path

import pytest
from class_lists import (
    batch,
)
from classroom import TINY, Instant, hand_in, marks
from commandline import Cli

from grader.classroom.standings import Standing, Standings


def test_names_stand_beside_ids_wherever_a_person_reads(
    cli: Cli, instant: Instant, tmp_path: Path, tiny_copy: Path
) -> None:
    texts = {"s001/scale.py": "# 8 points", "s002/scale.py": "lost", "s003/scale.py": "# 3 points"}
    hand_in(tmp_path / "class", texts)
    names = [*(f"s00{n},Name {n}" for n in range(1, 4)), *(f"t{n},T {n}" for n in range(30))]
    listed = "\n".join(["id,name", *names])
    said = batch(cli, tmp_path, tiny_copy, roster=listed)
    assert "  s001 (Name 1)    8 / 8  nothing to fix\n" in said.out
    assert "  s002 (Name 2) (scale): the process that graded it ended; " in said.err
    assert "handed in nothing: t0 (T 0); t1 (T 1); " in said.err
    assert "; t19 (T 19); and 10 more\n" in said.err
    place = ("--in", tmp_path / "out", "--course", tiny_copy)
    assert (
        "  s003 (Name 3)    4 / 8  " in cli("adjust", "s003", "scale", 1, "--why", "x", *place).out
    )
    hidden = tiny_copy / "reference" / "scale" / "test_hidden.py"
    hidden.write_text(f"{hidden.read_text()}\n# changed\n")
    instant.points["scale"] = 5
    again = cli("regrade", *place)
    assert "  s001 (Name 1)       8 → 5      of 8  scale -3\n" in again.out
    sheet = tmp_path / "gradebook.csv"
    sheet.write_text("Student,ID,Section,Homework (1)\nNobody,9,A,\n")
    assert "s003 (Name 3)" in cli("export", "canvas", sheet, *place).err
    cli("regrade", *place, "--publish")
    said = cli("export", "canvas", sheet, *place)
    assert "\n    s001 (Name 1): no row\n" in said.err


def test_whoever_needs_review_is_named_with_the_name(
    cli: Cli, instant: Instant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hand_in(tmp_path / "class", {f"s00{n}/scale.py": f"# {n} points" for n in (1, 2)})
    (tmp_path / "class.csv").write_text("id,name\ns001,Name 1\ns002,Name 2\n")
    place = (tmp_path / "class", "--out", tmp_path / "out", "--course", TINY, "--seed", 5)
    whole = Standings.standing

    def broken(standings: Standings, student: str) -> Standing | None:
        if student == "s002":
            raise ValueError("broken")
        return whole(standings, student)

    monkeypatch.setattr(Standings, "standing", broken)
    said = cli("batch", *place, "--roster", tmp_path / "class.csv")
    assert "! s002 (Name 2): the grader failed here (ValueError: broken); needs review" in said.err
    assert marks(tmp_path / "out")["s001"] == "1"
