"""A class graded in parts, on as many machines, comes out as if one had graded it."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from classroom import TINY, Instant, hand_in, marks, report_of, rows
from commandline import Cli

STUDENTS = [f"s0{n:02}" for n in range(1, 25)]


@pytest.fixture
def handed_in(tmp_path: Path) -> Path:
    """A class; some hand in the same, and some nothing that can be graded."""
    texts = {f"{name}/scale.py": f"# {n % 9} points" for n, name in enumerate(STUDENTS)}
    del texts["s005/scale.py"]
    return hand_in(tmp_path / "class", texts | {"s005/notes.txt": "nothing"})


def batch(cli: Cli, handed_in: Path, out: str = "parts", *more: object, seed: int = 5) -> Any:
    place = handed_in.parent / out
    return cli("batch", handed_in, "--out", place, "--course", TINY, "--seed", seed, *more)


def merge(cli: Cli, handed_in: Path) -> Any:
    return cli("merge", handed_in.parent / "parts", "--course", TINY)


@pytest.mark.slow
@pytest.mark.parametrize("parts", [1, 2, 30])
def test_parts_put_together_are_the_class(
    parts: int, cli: Cli, instant: Instant, handed_in: Path
) -> None:
    roster = handed_in.parent / "class.csv"
    names = [*STUDENTS, "s098", "s099"]
    roster.write_text("id,name\n" + "".join(f"{name},Name {name}\n" for name in names))
    whole, put = handed_in.parent / "whole", handed_in.parent / "parts"
    batch(cli, handed_in, "whole", "--roster", roster)
    at_once = len(instant.jobs)
    seen: list[str] = []
    for number in range(1, parts + 1):
        batch(cli, handed_in, "parts", "--shard", f"{number}/{parts}", "--roster", roster)
        part = put / f"shard-{number}-of-{parts}"
        seen += marks(part)
        missing = {name for (name,) in rows(part, "SELECT student FROM missing")}
        assert missing <= {"s098", "s099"}
    assert sorted(seen) == STUDENTS  # everybody in exactly one part
    before = len(instant.jobs)
    said = merge(cli, handed_in)
    assert said.code == 1
    assert f"{parts} parts, 24 students" in said.out
    assert len(instant.jobs) == before
    assert parts > 1 or before == 2 * at_once
    for name in ("grades.csv", "results.jsonl"):
        assert (put / name).read_bytes() == (whole / name).read_bytes()
    pages = {path.name for path in (whole / "reports").iterdir()}
    assert {path.name for path in (put / "reports").iterdir()} == pages
    for page in pages:
        assert (put / "reports" / page).read_bytes() == (whole / "reports" / page).read_bytes()
    assert "s099" in (put / "index.html").read_text()


@pytest.mark.slow
def test_merging_again_changes_nothing(cli: Cli, instant: Instant, handed_in: Path) -> None:
    for number in (1, 2):
        batch(cli, handed_in, "parts", "--shard", f"{number}/2")
    merge(cli, handed_in)
    grades = handed_in.parent / "parts" / "grades.csv"
    before = grades.stat().st_ino, grades.stat().st_mtime_ns
    assert merge(cli, handed_in).code == 1
    assert (grades.stat().st_ino, grades.stat().st_mtime_ns) == before


@pytest.mark.slow
def test_a_part_that_was_graded_again_counts_as_it_is_now(
    cli: Cli, instant: Instant, handed_in: Path
) -> None:
    for number in (1, 2):
        batch(cli, handed_in, "parts", "--shard", f"{number}/2")
    merge(cli, handed_in)
    # Somebody hands in again, somebody leaves the class; both parts are brought up to date.
    hand_in(handed_in, {"s007/scale.py": "# 8 points, at last"})
    shutil.rmtree(handed_in / "s009")
    for number in (1, 2):
        batch(cli, handed_in, "parts", "--shard", f"{number}/2", "--replace")
    merge(cli, handed_in)
    batch(cli, handed_in, "whole")
    whole, put = (handed_in.parent / name / "grades.csv" for name in ("whole", "parts"))
    assert put.read_bytes() == whole.read_bytes()


@pytest.mark.slow
def test_what_is_merged_can_be_adjusted_and_regraded(
    cli: Cli, instant: Instant, handed_in: Path
) -> None:
    for number in (1, 2):
        batch(cli, handed_in, "parts", "--shard", f"{number}/2")
    merge(cli, handed_in)
    out, jobs = handed_in.parent / "parts", len(instant.jobs)
    cli("adjust", "s004", "scale", "+2", "--why", "kind", "--in", out, "--course", TINY)
    assert report_of(out, "s004")["mark"]["points"] == 5
    said = cli("regrade", "--in", out, "--course", TINY)
    assert "0 change, 24 stay as they were" in said.out
    assert len(instant.jobs) == jobs
    merge(cli, handed_in)
    assert marks(out)["s004"] == "5"


@pytest.mark.slow
def test_a_part_goes_on_where_it_was(cli: Cli, instant: Instant, handed_in: Path) -> None:
    def stopping(job: Any) -> None:
        if len(instant.jobs) == 6:
            raise KeyboardInterrupt

    instant.before = stopping
    assert batch(cli, handed_in, "parts", "--shard", "1/2").code == 130
    instant.before = lambda job: None
    batch(cli, handed_in, "parts", "--shard", "2/2")
    said = merge(cli, handed_in)
    assert said.code == 2
    assert "some submissions are not graded yet, or the course has changed since" in said.err
    assert not (handed_in.parent / "parts" / "grades.csv").exists()
    out = handed_in.parent / "parts"
    assert cli("batch", "--resume", "--out", out, "--shard", "1/2", "--seed", 5, "--course", TINY)
    assert merge(cli, handed_in).code == 1
    assert list(marks(out)) == STUDENTS


def test_a_missing_part_is_named_with_the_command_that_grades_it(
    cli: Cli, instant: Instant, handed_in: Path
) -> None:
    for number in (1, 3):
        batch(cli, handed_in, "parts", "--shard", f"{number}/4")
    said = merge(cli, handed_in)
    out = handed_in.parent / "parts"
    assert said.code == 2
    assert "of 4 parts these are missing: 2/4, 4/4" in said.err
    assert f"grader batch SUBMISSIONS --out {out} --seed N --shard 2/4" in said.err
    assert not (out / "ledger.sqlite").exists()


def test_a_folder_without_parts_is_named(cli: Cli, tmp_path: Path) -> None:
    said = cli("merge", tmp_path, "--course", TINY)
    assert (said.code, f"{tmp_path} holds no parts of a class" in said.err) == (2, True)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_parts_of_several_divisions_are_named(cli: Cli, instant: Instant, handed_in: Path) -> None:
    for shard in ("1/2", "2/2", "3/3"):
        batch(cli, handed_in, "parts", "--shard", shard)
    said = merge(cli, handed_in)
    assert said.code == 2
    assert "shard-1-of-2, shard-2-of-2, shard-3-of-3" in said.err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "what"), [({"seed": 6}, "seed"), ({"attempt": "best"}, "attempt")]
)
def test_parts_that_were_graded_differently_are_refused(
    options: dict[str, Any], what: str, cli: Cli, instant: Instant, handed_in: Path
) -> None:
    batch(cli, handed_in, "parts", "--shard", "1/2")
    more = ("--attempt", options["attempt"]) if "attempt" in options else ()
    batch(cli, handed_in, "parts", "--shard", "2/2", *more, seed=options.get("seed", 5))
    said = merge(cli, handed_in)
    assert said.code == 2
    assert "shard-1-of-2 and shard-2-of-2 were graded with different options" in said.err
    assert f"({what})" in said.err
    assert "the same --seed, --attempt and --roster" in said.err
    assert not (handed_in.parent / "parts" / "grades.csv").exists()


@pytest.mark.slow
def test_a_part_of_another_state_of_the_course_waits_to_be_graded(
    cli: Cli, instant: Instant, handed_in: Path, tiny_copy: Path
) -> None:
    batch(cli, handed_in, "parts", "--shard", "1/2")
    suite = tiny_copy / "reference" / "scale" / "test_hidden.py"
    suite.write_text(suite.read_text() + "\n# changed\n")
    place = handed_in.parent / "parts"
    more = ("--course", tiny_copy, "--seed", 5, "--shard", "2/2")
    cli("batch", handed_in, "--out", place, *more)
    said = merge(cli, handed_in)
    assert said.code == 2
    assert f"grader regrade --in {place}" in said.err
    jobs = len(instant.jobs)
    said = cli("regrade", "--in", place, "--course", TINY, "--publish")
    assert said.code == 0
    assert jobs < len(instant.jobs) < jobs + 24
    assert list(marks(place)) == STUDENTS


def test_parts_need_a_seed_of_their_own_choice(cli: Cli, handed_in: Path) -> None:
    said = cli("batch", handed_in, "--out", handed_in.parent / "parts", "--shard", "1/2")
    assert said.code == 2
    assert not (handed_in.parent / "parts").exists()
    said = cli(
        *("batch", handed_in, "--out", handed_in.parent / "parts", "--shard", "1/2"),
        *("--course", TINY),
    )
    assert (said.code, "every part of a class needs the same seed" in said.err) == (2, True)


@pytest.mark.parametrize("shard", ["0/2", "3/2", "1", "1/0", "a/b", "-1/2", "1/2/3"])
def test_what_is_no_part_is_refused(shard: str, cli: Cli, handed_in: Path) -> None:
    said = batch(cli, handed_in, "parts", "--shard", shard)
    assert said.code == 2
    assert re.search(rf"{re.escape(shard)} is not a part such as 3/10", said.err)


@pytest.mark.slow
def test_a_folder_may_be_called_anything(cli: Cli, instant: Instant, handed_in: Path) -> None:
    odd = "50% of #3?"
    batch(cli, handed_in, odd, "--shard", "1/1")
    assert cli("merge", handed_in.parent / odd, "--course", TINY).code == 1
    results = (handed_in.parent / odd / "results.jsonl").read_text().splitlines()
    assert [json.loads(line)["submission"] for line in results] == STUDENTS
