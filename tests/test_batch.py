"""A class is graded whole: whatever somebody hands in, everybody gets a report and a mark."""

from __future__ import annotations

import csv
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest

from grader.sandbox import landlock

TINY = Path(__file__).parent / "tiny"


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
    write("s005/b/scale.py")
    with zipfile.ZipFile(folder / "s006.zip", "w") as archive:
        archive.writestr("s006/scale.py", tiny_solution)
        archive.writestr("s006/.venv/lib/thing.bin", b"x")
    (folder / "s007.zip").write_bytes(b"PK\x03\x04 this is no zip")
    write("readme.md", "hello")
    os.symlink(folder / "s001", folder / "s008")
    return folder


def batch(cli: Any, handed_in: Path, *more: object) -> Any:
    out = handed_in.parent / "out"
    return cli("batch", handed_in, "--out", out, "--course", TINY, "--seed", 5, *more)


def test_everybody_gets_a_report_and_a_mark(cli: Any, handed_in: Path) -> None:
    said = batch(cli, handed_in)
    assert said.code == 1
    out = handed_in.parent / "out"
    rows = list(csv.DictReader((out / "grades.csv").open()))
    marks = {row["submission"]: row["points"] for row in rows}
    assert marks == {"s001": "8", "s002": "8", "s003": "6", "s004": "0", "s005": "0"} | {
        "s006": "8",
        "s007": "0",
    }
    for name, points in marks.items():
        report = json.loads((out / "reports" / f"{name}.json").read_text())
        assert str(report["points"]) == points
        assert report["seed"] == 5
        for suffix in (".html", ".md"):
            assert (out / "reports" / f"{name}{suffix}").stat().st_size > 200
    assert "readme.md is neither a folder nor a zip and was left out" in said.err
    assert "s008 is a link and was left out" in said.err
    assert "  s003    6 / 8  first to mend: scale" in said.out
    assert "7 submissions graded" in said.out
    assert not [path for path in (out / "reports").iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("s004", "no exercise file in s004"),
        ("s005", "several folders hold exercises, and none was taken: a, b"),
        ("s007", "s007.zip: the archive cannot be read: File is not a zip file"),
    ],
)
def test_a_report_says_why_nothing_was_graded(
    name: str, advice: str, cli: Any, handed_in: Path
) -> None:
    batch(cli, handed_in)
    report = json.loads((handed_in.parent / "out" / "reports" / f"{name}.json").read_text())
    assert advice in report["exercises"][0]["advice"]
    assert str(handed_in) not in json.dumps(report)


def test_nobody_takes_a_neighbours_name(cli: Any, tmp_path: Path, tiny_solution: str) -> None:
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
    assert "'=1+1,8,8,8" in (tmp_path / "out" / "grades.csv").read_text()


@pytest.mark.parametrize(
    ("submissions", "out", "said"),
    [
        ("nowhere", "out", "there is no folder"),
        ("empty", "out", "holds no submissions"),
        ("empty", "empty", "holds the submissions"),
    ],
)
def test_a_wrong_request_is_said_before_anything_is_written(
    submissions: str, out: str, said: str, cli: Any, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    answer = cli("batch", tmp_path / submissions, "--out", tmp_path / out, "--course", TINY)
    assert answer.code == 2
    assert said in answer.err
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_written_is_named(cli: Any, handed_in: Path) -> None:
    (handed_in.parent / "out").write_text("a file")
    answer = cli("batch", handed_in, "--out", handed_in.parent / "out", "--course", TINY)
    assert answer.code == 2
    assert "out" in answer.err


def test_the_reports_name_the_confinement(cli: Any, handed_in: Path) -> None:
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


def test_nothing_of_the_environment_reaches_a_report(
    cli: Any, handed_in: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "SECRET-TOKEN-VALUE")
    (handed_in / "s001" / "scale.py").write_text("import os\nprint(dict(os.environ))\n")
    batch(cli, handed_in)
    for path in (handed_in.parent / "out").rglob("*.*"):
        assert "SECRET-TOKEN-VALUE" not in path.read_text()


def test_a_submission_that_cannot_be_opened_stops_nobody(
    cli: Any, handed_in: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from grader import batch as grading

    real = grading.discover

    def denied(paths: list[Path], course: Any) -> Any:
        if paths[0].name == "s002":
            raise PermissionError(13, "Permission denied", str(paths[0]))
        return real(paths, course)

    monkeypatch.setattr(grading, "discover", denied)
    assert batch(cli, handed_in).code == 1
    report = json.loads((handed_in.parent / "out" / "reports" / "s002.json").read_text())
    assert "Permission denied: 's002'" in report["exercises"][0]["advice"]
    assert (handed_in.parent / "out" / "reports" / "s006.json").exists()


def test_what_was_left_out_is_told_in_a_few_lines(
    cli: Any, tmp_path: Path, tiny_solution: str
) -> None:
    (tmp_path / "class" / "s001").mkdir(parents=True)
    (tmp_path / "class" / "s001" / "scale.py").write_text(tiny_solution)
    for number in range(300):
        (tmp_path / "class" / "s001" / f"stray{number}.py").write_text("")
    batch(cli, tmp_path / "class")
    report = json.loads((tmp_path / "out" / "reports" / "s001.json").read_text())
    assert len(report["notes"]) == 21
    assert report["notes"][-1] == "and 280 more"


def test_what_was_graded_before_a_stop_is_kept(
    cli: Any, handed_in: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from grader import cli as commands

    def stopping(report: Any) -> str:
        if report.submission == "s003":
            raise KeyboardInterrupt
        return str(report.submission)

    monkeypatch.setattr(commands, "_verdict", stopping)
    said = batch(cli, handed_in)
    assert (said.code, said.err.splitlines()[-1]) == (130, "grader: stopped")
    rows = list(csv.DictReader((handed_in.parent / "out" / "grades.csv").open()))
    assert [row["submission"] for row in rows] == ["s001", "s002", "s003"]


def test_a_course_that_student_code_could_read_is_refused(
    cli: Any, handed_in: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(landlock, "readable", lambda: ("/usr/lib", str(TINY.parent)))
    said = batch(cli, handed_in)
    assert said.code == 2
    assert f"the course lies in {TINY.parent}, where student code may read" in said.err
    assert batch(cli, handed_in, "--isolation", "process").code == 1
