"""A class is graded whole: whatever somebody hands in, everybody gets a report and a mark."""

from __future__ import annotations

import csv
import json
import os
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pytest
from classroom import TINY, Instant, grade_lines, hand_in, marks, report_of, rows, run, state
from commandline import Cli

from grader.sandbox.confinement import landlock
from grader.submissions.reader.exchange import ReadingImpossible
from grader.submissions.reader.messages import ReadingRefused
from grader.submissions.reader.template import ReaderTemplate


@pytest.fixture
def handed_in(tmp_path: Path, tiny_solution: str) -> Path:
    """A class in which everybody hands in otherwise."""
    folder = tmp_path / "class"

    def write(path: str, text: str = tiny_solution) -> Path:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
        return folder / path

    write("s001/scale.py")
    write("s002/homework/final/scale.py")
    write("s003/scale.py", tiny_solution.replace("return x * factor", "return x * 2.0"))
    write("s004/notes.txt", "I have nothing to hand in")
    write("s005/a/scale.py")
    write("s005/b/scale.py", tiny_solution + "newer = 1\n")
    with zipfile.ZipFile(folder / "s006.zip", "w") as archive:
        archive.writestr("s006/scale.py", tiny_solution)
        archive.writestr("s006/.venv/lib/thing.bin", b"x")
    (folder / "s007.zip").write_bytes(b"PK\x03\x04 this is no zip")
    write("readme.md", "hello")
    os.symlink(folder / "s001", folder / "s008")
    return folder


def batch(cli: Cli, handed_in: Path, *more: object) -> Any:
    out = handed_in.parent / "out"
    return cli("batch", handed_in, "--out", out, "--course", TINY, "--seed", 5, *more)


@pytest.mark.slow
def test_everybody_gets_a_report_and_a_mark(cli: Cli, handed_in: Path) -> None:
    said = batch(cli, handed_in)
    assert said.code == 1
    out = handed_in.parent / "out"
    lines = list(csv.DictReader((out / "grades.csv").open(encoding="utf-8-sig")))
    points_of = {row["submission"]: row["points"] for row in lines}
    assert points_of == {"s001": "8", "s002": "8", "s003": "6", "s004": "0", "s005": "0"} | {
        "s006": "8",
        "s007": "0",
    }
    for name, points in points_of.items():
        report = json.loads((out / "reports" / f"{name}.json").read_text())
        assert str(report["points"]) == points
        assert report["seed"] != 5  # whoever knows it knows nothing about the inputs
        for suffix in (".html", ".md"):
            assert (out / "reports" / f"{name}{suffix}").stat().st_size > 200
    assert "readme.md is neither a folder nor a zip and was left out" in said.err
    assert "s008 is a link and was left out" in said.err
    assert "  s003    6 / 8  first to fix: scale" in said.out
    assert "7 submissions graded" in said.out
    assert not [path for path in (out / "reports").iterdir() if path.name.startswith(".")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("s004", "no exercise file in s004"),
        (
            "s005",
            "`a/scale.py` and `b/scale.py` could each be meant for scale, so none of them was used",
        ),
        ("s007", "`s007.zip`: the archive cannot be read: File is not a zip file"),
    ],
)
def test_a_report_says_why_nothing_was_graded(
    name: str, advice: str, cli: Cli, handed_in: Path
) -> None:
    batch(cli, handed_in)
    report = json.loads((handed_in.parent / "out" / "reports" / f"{name}.json").read_text())
    assert advice in report["exercises"][0]["advice"]
    assert str(handed_in) not in json.dumps(report)


@pytest.mark.slow
def test_what_cannot_be_read_counts_nothing_and_is_left_to_a_person(
    cli: Cli, handed_in: Path
) -> None:
    (handed_in / "s003" / "scale.py").write_bytes(b"\xc3(")
    (handed_in / "s009").mkdir()
    said = batch(cli, handed_in)
    out = handed_in.parent / "out"
    told = {
        "s003": "could not be read: `scale.py` is not UTF-8",
        "s004": "could not be read: no exercise file in s004",
        "s005": "could not be read: no exercise file in s005; `a/scale.py` and `b/scale.py` could",
        "s007": "could not be read: `s007.zip`: the archive cannot be read",
        "s009": "could not be read: no file was handed in",
    }
    lines = grade_lines(out)
    assert [name for name, row in lines.items() if row["flags"]] == list(told)
    for name, why in told.items():
        assert lines[name]["flags"].startswith(why)
        assert lines[name]["points"] == "0"
        assert report_of(out, name)["flags"] == [lines[name]["flags"]]
        assert f"  {name}    0 / 8  ! could not be read: " in said.out
    assert report_of(out, "s001")["flags"] == []


def test_a_class_of_whom_nothing_can_be_read_gets_its_reports(
    cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    hand_in(tmp_path / "class", {"s001/notes.txt": "x", "s002/notes.txt": "y"})
    for _ in range(2):
        assert run(cli, tmp_path).code == 1
        assert marks(tmp_path / "out") == {"s001": "0", "s002": "0"}
        assert report_of(tmp_path / "out", "s002")["flags"]
    assert instant.jobs == []


def test_nobody_takes_a_neighbours_name(cli: Cli, tmp_path: Path, tiny_solution: str) -> None:
    long = "n" * 250
    for name in ("s001", "S001", "=1+1", "\x01s001", "bob\nbob  10 of 10", long):
        (tmp_path / "class" / name).mkdir(parents=True)
        (tmp_path / "class" / name / "scale.py").write_text(tiny_solution)
    assert batch(cli, tmp_path / "class").code == 0
    reports = {path.stem for path in (tmp_path / "out" / "reports").glob("*.json")}
    assert {"S001", "s001", "=1+1"} < reports
    marked = {name.rpartition("-")[0] for name in reports - {"S001", "s001", "=1+1"}}
    assert marked == {"s001", "bob bob 10 of 10", "n" * 120}
    assert json.loads((tmp_path / "out" / "reports" / "s001.json").read_text())["points"] == 8
    assert "'=1+1,8,8," in (tmp_path / "out" / "grades.csv").read_text()


def test_a_submission_that_cannot_be_opened_stops_nobody(
    cli: Cli, handed_in: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = ReaderTemplate.ask

    def denied(template: ReaderTemplate, job: Any, *more: Any, **options: Any) -> Any:
        if job.student == b"s002":
            raise ReadingImpossible(ReadingRefused("Permission denied: 's002'"))
        return real(template, job, *more, **options)

    monkeypatch.setattr(ReaderTemplate, "ask", denied)
    assert batch(cli, handed_in).code == 1
    report = report_of(handed_in.parent / "out", "s002")
    assert "Permission denied: 's002'" in report["exercises"][0]["advice"]
    assert (handed_in.parent / "out" / "reports" / "s006.json").exists()


def test_what_was_left_out_is_told_in_a_few_lines(
    cli: Cli, tmp_path: Path, tiny_solution: str
) -> None:
    (tmp_path / "class" / "s001").mkdir(parents=True)
    (tmp_path / "class" / "s001" / "scale.py").write_text(tiny_solution)
    for number in range(300):
        (tmp_path / "class" / "s001" / f"stray{number}.py").write_text("")
    batch(cli, tmp_path / "class")
    report = json.loads((tmp_path / "out" / "reports" / "s001.json").read_text())
    assert len(report["notes"]) == 21
    assert report["notes"][-1] == "and 280 more"


# --- what students see ----------------------------------------------------------------------------


def test_the_reports_name_the_confinement(cli: Cli, handed_in: Path) -> None:
    batch(cli, handed_in)
    report = json.loads((handed_in.parent / "out" / "reports" / "s001.json").read_text())
    assert report["confinement"] == [
        "separate process",
        "resource limits",
        "no privileges",
        "Landlock",
        "seccomp",
    ]
    page = (handed_in.parent / "out" / "reports" / "s001.html").read_text()
    assert "Landlock, seccomp" in page


@pytest.mark.slow
def test_nothing_of_the_environment_reaches_a_report(
    cli: Cli, handed_in: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "SECRET-TOKEN-VALUE")
    (handed_in / "s001" / "scale.py").write_text("import os\nprint(dict(os.environ))\n")
    batch(cli, handed_in)
    for path in (handed_in.parent / "out").rglob("*.*"):
        assert b"SECRET-TOKEN-VALUE" not in path.read_bytes()
    for (files,) in rows(handed_in.parent / "out", "SELECT files FROM submissions"):
        assert b"SECRET-TOKEN-VALUE" not in zlib.decompress(files)


CASES = """

from grader.authors import Check, drawn, output

test_more = Check("Other calls come out right, too.", points=0)
test_more.case("A factor of 3.", output("scale", drawn(4, 5), 3.0))
"""


@pytest.mark.slow
def test_students_see_what_the_course_shows(
    cli: Cli, handed_in: Path, tmp_path: Path, tiny_copy: Path
) -> None:
    settings = tiny_copy / "reference" / "course.toml"
    with (tiny_copy / "reference" / "scale" / "test_hidden.py").open("a") as file:
        file.write(CASES)
    base = 'title = "A tiny course"\npoints = 8\n'
    wrong = tmp_path / "out" / "reports" / "s003.json"
    shown: dict[str, Any] = {}
    for show in ("", '[show]\ndiagnosis = "never"\n', '[show]\ntests = "never"\nidea = "never"\n'):
        settings.write_text(base + show)
        cli("batch", handed_in, "--out", tmp_path / "out", "--course", tiny_copy, "--seed", 5)
        shown[show] = json.loads(wrong.read_text())["exercises"][0]
    everything, no_diagnosis, no_tests = shown.values()
    assert everything["diagnosis"]["faults"] == ["factor_capped"]
    assert no_diagnosis["diagnosis"] is None
    assert any(test["message"] for test in no_diagnosis["tests"])
    assert {test["name"] for test in no_tests["tests"]} == {"hidden"}
    assert not any(test["message"] for test in no_tests["tests"])
    assert marks(tmp_path / "out")["s003"] == "6"
    # What students do not see, the teacher's own list has.
    line = next(
        json.loads(text)
        for text in (tmp_path / "out" / "results.jsonl").read_text().splitlines()
        if json.loads(text)["submission"] == "s003"
    )
    assert "test_thrice" in {test["name"] for test in line["exercises"][0]["tests"]}


# --- requests and folders -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("submissions", "out", "said"),
    [
        ("nowhere", "out", "there is no folder"),
        ("empty", "out", "holds no submissions"),
        ("empty", "empty", "holds the submissions"),
    ],
)
def test_a_wrong_request_is_said_before_anything_is_written(
    submissions: str, out: str, said: str, cli: Cli, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    answer = cli("batch", tmp_path / submissions, "--out", tmp_path / out, "--course", TINY)
    assert answer.code == 2
    assert said in answer.err
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_written_is_named(cli: Cli, handed_in: Path) -> None:
    (handed_in.parent / "out").write_text("a file")
    answer = cli("batch", handed_in, "--out", handed_in.parent / "out", "--course", TINY)
    assert answer.code == 2
    assert "out" in answer.err


def test_a_course_that_student_code_could_read_is_refused(
    cli: Cli, instant: Instant, handed_in: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(landlock, "readable", lambda: ("/usr/lib", str(TINY.parent)))
    said = batch(cli, handed_in)
    assert said.code == 2
    assert f"the course lies in {TINY.parent}, where student code may read" in said.err
    assert batch(cli, handed_in, "--isolation", "process").code == 1


def test_a_dry_run_tells_who_what_and_why_and_writes_nothing(
    cli: Cli, instant: Instant, handed_in: Path
) -> None:
    roster = handed_in.parent / "class.csv"
    roster.write_text("id,name\ns001,Student One\ns099,Student Two\n")
    before = state(handed_in.parent)
    said = batch(cli, handed_in, "--dry-run", "--roster", roster)
    assert (said.code, instant.jobs) == (0, [])
    assert state(handed_in.parent) == before
    assert not (handed_in.parent / "out").exists()
    assert "plain layout: 7 students" in said.err
    assert "s008 is a link and was left out" in said.err
    assert "of the roster, 1 handed in nothing: s099 (Student Two)" in said.err
    assert "  s001 (Student One): 1 of 1 exercises" in said.out
    assert "  s004: 0 of 1 exercises" in said.out
    assert "`a/scale.py` and `b/scale.py` could each be meant for scale" in " ".join(
        said.out.split()
    )
    assert "nothing was graded: this was a dry run" in said.out


def test_results_beneath_the_submissions_are_none_of_them(
    cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    hand_in(tmp_path / "class", {"s001/scale.py": "# 1 points"})
    out = tmp_path / "class" / "results"
    for _ in range(2):
        said = cli("batch", tmp_path / "class", "--out", out, "--course", TINY, "--seed", 5)
        assert "plain layout: 1 student\n" in said.err
    said = cli("batch", out, "--out", out, "--seed", 5, "--course", TINY)
    assert (said.code, "holds the submissions" in said.err) == (2, True)


def test_a_log_that_cannot_be_written_is_named(cli: Cli, instant: Instant, tmp_path: Path) -> None:
    hand_in(tmp_path / "class", {"s001/scale.py": "# 1 points"})
    said = run(cli, tmp_path, "--log", tmp_path / "nowhere" / "log.jsonl")
    assert said.code == 2
    assert f"cannot write {tmp_path / 'nowhere' / 'log.jsonl'}: No such file" in said.err


def test_hidden_files_of_others_stay(cli: Cli, instant: Instant, tmp_path: Path) -> None:
    hand_in(tmp_path / "class", {"s001/scale.py": "# 3 points"})
    hand_in(tmp_path / "out", {".2026-notes.md": "mine"})
    run(cli, tmp_path)
    assert (tmp_path / "out" / ".2026-notes.md").read_text() == "mine"
