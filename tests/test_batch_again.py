"""What was graded once is not graded again, and only what changed is written anew."""

from __future__ import annotations

from pathlib import Path

import pytest
from classroom import TINY, Instant, events, hand_in, marks, report_of, rows, run, state
from commandline import Cli


@pytest.mark.slow
def test_the_same_command_again_grades_nothing_and_writes_nothing(
    cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    hand_in(tmp_path / "class", {f"s00{n}/scale.py": f"# {n} points" for n in range(1, 9)})
    hand_in(tmp_path / "class", {"s009/notes.txt": "nothing"})
    log = tmp_path / "log.jsonl"
    assert run(cli, tmp_path, "--log", log).code == 1
    found, before = rows(tmp_path / "out", "SELECT * FROM results"), state(tmp_path / "out")
    assert len(found) == len(instant.jobs) == 8
    assert run(cli, tmp_path, "--log", log).code == 1
    assert cli("batch", "--resume", "--out", tmp_path / "out", "--course", TINY).code == 1
    assert rows(tmp_path / "out", "SELECT * FROM results") == found
    assert rows(tmp_path / "out", "SELECT count(*) FROM runs") == [(1,)]
    assert len(instant.jobs) == 8
    assert state(tmp_path / "out") == before
    graded = [event["student"] for event in events(log) if event["event"] == "graded"]
    assert graded == [f"s00{n}" for n in range(1, 9)]


@pytest.mark.slow
def test_a_page_that_is_gone_is_written_again(cli: Cli, instant: Instant, tmp_path: Path) -> None:
    hand_in(tmp_path / "class", {f"s00{n}/scale.py": f"# {n} points" for n in range(1, 4)})
    run(cli, tmp_path)
    gone = [
        *(tmp_path / "out" / "reports" / f"s002{suffix}" for suffix in (".html", ".json", ".md")),
        *(tmp_path / "out" / name for name in ("grades.csv", "results.jsonl", "index.html")),
    ]
    before = state(tmp_path / "out")
    for path in gone:
        path.unlink()
        run(cli, tmp_path)
        assert path.stat().st_size > 10
    others = [str(path) for path in (tmp_path / "out" / "reports").glob("s001*")]
    assert {path: before[path] for path in others} == {
        path: state(tmp_path / "out")[path] for path in others
    }
    assert len(instant.jobs) == 3


def test_resume_takes_nothing_new(cli: Cli, instant: Instant, tmp_path: Path) -> None:
    hand_in(tmp_path / "class", {"s001/scale.py": "# 3 points"})
    run(cli, tmp_path)
    for more in ([tmp_path / "class"], ["--attempt", "best"], ["--layout", "canvas"]):
        said = cli("batch", *more, "--resume", "--out", tmp_path / "out", "--course", TINY)
        assert said.code == 2
        assert "--resume continues with what was handed in then" in said.err
    assert cli("batch", "--resume", "--out", tmp_path / "out", "--course", TINY).code == 1


def test_whoever_has_left_the_class_has_left_its_marks(
    cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    hand_in(tmp_path / "class", {f"s00{n}/scale.py": f"# {n} points" for n in (1, 2, 3)})
    run(cli, tmp_path)
    (tmp_path / "class" / "s002" / "scale.py").unlink()
    (tmp_path / "class" / "s002").rmdir()
    run(cli, tmp_path, "--replace")
    assert marks(tmp_path / "out") == {"s001": "1", "s003": "3"}
    hand_in(tmp_path / "class", {"s002/scale.py": "# 2 points"})
    run(cli, tmp_path)
    assert marks(tmp_path / "out") == {"s001": "1", "s002": "2", "s003": "3"}
    assert len(instant.jobs) == 3


def test_who_hands_in_again_is_graded_again_and_nobody_else(
    cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    hand_in(tmp_path / "class", {f"s00{n}/scale.py": f"# {n} points" for n in (1, 2, 3)})
    run(cli, tmp_path)
    hand_in(tmp_path / "class", {"s002/scale.py": "# 8 points"})
    run(cli, tmp_path, "--replace")
    assert [name for name, _ in instant.graded] == ["s001", "s002", "s003", "s002"]
    assert marks(tmp_path / "out") == {"s001": "1", "s002": "8", "s003": "3"}


# --- students who hand in the same ----------------------------------------------------------------


def test_a_submission_that_two_hand_in_is_graded_once(
    cli: Cli, instant: Instant, tmp_path: Path, pair: Path
) -> None:
    same = {"scale.py": "# 3 points", "shift.py": "# 2 points"}
    for student in ("s001", "s002"):
        hand_in(tmp_path / "class" / student, same)
    # Two more with the same files, but one of them has a file that cannot be read besides.
    hand_in(tmp_path / "class" / "s003", {"scale.py": "# 4 points"})
    hand_in(tmp_path / "class" / "s004", {"scale.py": "# 4 points"})
    (tmp_path / "class" / "s004" / "shift.py").write_bytes(b"\xff")
    assert run(cli, tmp_path, "--course", pair).code == 1
    assert instant.graded == [("s001", ("scale", "shift")), ("s003", ("scale",))]
    assert marks(tmp_path / "out") == {"s001": "5", "s002": "5", "s003": "4", "s004": "4"}
    for number in range(1, 5):
        report = report_of(tmp_path / "out", f"s00{number}")
        assert report["submission"] == f"s00{number}"
        assert (tmp_path / "out" / "reports" / f"s00{number}.html").exists()


def test_who_hands_in_the_same_does_not_read_what_another_calls_it(
    cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    text = "# 3 points\ndef scale(x, factor):\n    return x\n"
    hand_in(tmp_path / "class", {"s001/by_s001_alone.py": text, "s002/hw.py": text})
    run(cli, tmp_path)
    assert len(instant.jobs) == 1
    places = {
        student: report_of(tmp_path / "out", student)["exercises"][0]["tests"][0]["where"]["file"]
        for student in ("s001", "s002")
    }
    assert places == {"s001": "by_s001_alone.py", "s002": "hw.py"}
