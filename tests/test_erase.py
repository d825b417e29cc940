"""`grader erase`: nothing stored about a student is left, and nobody else notices."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest
from class_lists import batch as batch_listed
from classroom import TINY, Instant, grade_lines, hand_in, report_of, rows
from commandline import Cli, Said
from regrading import adjust, batch, out, pages, regrade

from grader.classroom import erasing, storage
from grader.classroom.erasing import still_naming

SECRET = "zebra_crossing_4711"  # in the code of s003 alone
ROSTER = (
    "id,name,email,number\ns001,Ada Berg,s001@school.example,100001\n"
    "s002,Ben Diaz,s002@school.example,100002\ns003,Cleo Ekwall,cleo@school.example,100003\n"
    "s004,Dan Fuchs,s004@school.example,100004\ns005,Eve Gomez,s005@school.example,100005\n"
)
TRACES = ("s003", "Cleo", "Ekwall", "cleo@school", "100003", SECRET, "a private reason")
SHARED = re.compile(r"grades\.csv|results\.jsonl|index\.html|similar/.*")


def erase(cli: Cli, folder: Path, course: Path, *more: object) -> Said:
    return cli("erase", "s003", "--in", folder, "--course", course, *more)


def traces(folder: Path) -> list[str]:
    """Where something of s003 is left, in a name or in the bytes of a file."""
    found = [str(path) for path in folder.rglob("*") if "s003" in path.name]
    for path in folder.rglob("*"):
        data = path.read_bytes() if path.is_file() else b""
        found += [f"{path.name}: {trace}" for trace in TRACES if trace.encode() in data]
    return found


@pytest.fixture
def roster(tmp_path: Path) -> Path:
    path = tmp_path / "roster.csv"
    path.write_text(ROSTER)
    return path


@pytest.fixture
def results(cli: Cli, instant: Instant, handed_in: Path, pair: Path, roster: Path) -> Path:
    """A class of which s003 has a part in everything that is stored, also twice over."""
    code = f"# 5 points\ndef {SECRET}():\n    pass\n"
    hand_in(handed_in, {"s003/scale.py": f"# 1 points\n# {SECRET} before\n"})
    batch(cli, handed_in, pair, "--roster", roster)
    hand_in(handed_in, {"s003/scale.py": code})
    batch(cli, handed_in, pair, "--replace")
    adjust(cli, handed_in, pair, "s003", "scale", "+2", why="a private reason")
    adjust(cli, handed_in, pair, "s001", "scale", "+1", why="kind")
    return out(handed_in)


@pytest.mark.slow
def test_no_byte_about_an_erased_student_is_left(cli: Cli, results: Path, pair: Path) -> None:
    assert len(traces(results)) > 10  # what is looked for can be found
    for form in ("csv", "junit", "gradescope", "classroom50"):
        assert cli("export", form, "--in", results, "--course", pair).code == 0
    sender = ("--from", "team@school.example")
    assert cli("return", "mail", "--in", results, "--course", pair, *sender).code == 0
    said = erase(cli, results, pair, "--yes")
    assert (said.code, traces(results)) == (0, [])
    assert "erased from" in said.out
    assert "sets of files: 2" in said.out  # those of the attempt that was replaced, too
    assert "lines of the roster and the groups: 1" in said.out
    assert "removed: gradescope/s003, classroom50/s003, marks.csv, junit.xml" in said.out
    assert "still naming" not in said.out
    assert (results / "gradescope" / "s001" / "results.json").is_file()


def test_marks_and_pages_of_the_others_stay_as_they_are(
    cli: Cli, results: Path, handed_in: Path, pair: Path
) -> None:
    before, lines = pages(handed_in), grade_lines(results)
    kept = rows(results, "SELECT * FROM published WHERE student != 's003' ORDER BY student")
    log = rows(results, "SELECT * FROM history WHERE about NOT IN ('s003', '') ORDER BY id")
    erase(cli, results, pair, "--yes")
    after = pages(handed_in)
    others = {name for name in before if "s003" not in name and not SHARED.fullmatch(name)}
    assert {name: after[name] for name in others} == {name: before[name] for name in others}
    assert {*after} == {name for name in before if "s003" not in name}
    del lines["s003"]
    assert grade_lines(results) == lines
    assert rows(results, "SELECT * FROM published ORDER BY student") == kept
    assert log == rows(results, "SELECT * FROM history WHERE about != '' ORDER BY id")
    assert "0 change, 3 stay" in regrade(cli, handed_in, pair).out


def test_an_erased_student_does_not_come_back_unasked(
    cli: Cli, results: Path, handed_in: Path, pair: Path, roster: Path
) -> None:
    erase(cli, results, pair, "--yes")
    said = batch(cli, handed_in, pair)
    assert said.code == 2
    assert "erased here before, and still in the submissions or on the roster: s003" in said.err
    assert traces(results) == []
    (handed_in / "s003").rename(handed_in.parent / "elsewhere")
    assert batch(cli, handed_in, pair, "--roster", roster).code == 2  # which still has the line
    assert traces(results) == []
    assert batch(cli, handed_in, pair).code == 1
    assert traces(results) == []
    (handed_in.parent / "elsewhere").rename(handed_in / "s003")
    assert batch(cli, handed_in, pair, "--replace").code == 1
    assert batch(cli, handed_in, pair).code == 1  # and no more questions
    assert report_of(results, "s003")["mark"]["points"] == 7  # no adjustment


def test_who_handed_in_nothing_is_erased_as_well(cli: Cli, results: Path, pair: Path) -> None:
    assert b"Eve Gomez" in (results / "grades.csv").read_bytes()
    said = cli("erase", "Eve Gomez", "--in", results, "--course", pair, "--yes")
    assert said.code == 0
    left = [path for path in results.rglob("*") if path.is_file() and b"Gomez" in path.read_bytes()]
    assert left == []


def test_files_that_another_student_handed_in_too_stay(
    cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    hand_in(tmp_path / "class", {f"s00{n}/scale.py": "# 8 points\n" for n in (1, 3)})
    batch(cli, tmp_path / "class", TINY)
    erase(cli, tmp_path / "out", TINY, "--yes")
    assert rows(tmp_path / "out", "SELECT count(*) FROM submissions") == [(1,)]
    assert batch(cli, tmp_path / "class", TINY, "--replace").code == 0
    assert len(instant.jobs) == 1


def test_the_group_of_an_erased_student_is_told_of_somebody(
    cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    hand_in(tmp_path / "class", {"s003/scale.py": "# 8 points\n"})
    groups = "group,id\nteam,s001\nteam,s003\n"
    batch_listed(cli, tmp_path, roster=ROSTER, groups=groups)
    assert any(
        "s003 (Cleo Ekwall)" in note for note in report_of(tmp_path / "out", "s001")["notes"]
    )
    cli("export", "gradescope", "--in", tmp_path / "out", "--course", TINY)
    said = erase(cli, tmp_path / "out", TINY, "--yes")
    assert "still naming" not in said.out
    assert "written again, because they named the student: the reports of s001" in said.out
    notes = report_of(tmp_path / "out", "s001")["notes"]
    assert "handed in by somebody who was erased for the group team" in notes
    assert traces(tmp_path / "out") == []


def test_nobody_is_graded_under_new_rules_because_somebody_is_erased(
    cli: Cli, results: Path, handed_in: Path, pair: Path
) -> None:
    before = pages(handed_in)
    suite = pair / "reference" / "scale" / "test_hidden.py"
    suite.write_text(f"{suite.read_text()}\n# changed\n")
    said = erase(cli, results, pair, "--yes")
    assert (said.code, traces(results)) == (0, [])
    assert "grader regrade" in said.out
    after = pages(handed_in)
    assert "index.html" not in after
    for name in ("grades.csv", "results.jsonl"):
        kept = [line for line in before[name].splitlines(True) if b"s003" not in line]
        assert after[name] == b"".join(kept)
    assert regrade(cli, handed_in, pair, "--publish").code == 0
    assert (results / "index.html").is_file()
    assert traces(results) == []


def test_without_a_terminal_nothing_is_erased_unless_told(
    cli: Cli, results: Path, pair: Path, handed_in: Path
) -> None:
    before = pages(handed_in)
    said = erase(cli, results, pair)
    assert (said.code, pages(handed_in)) == (2, before)
    assert "--yes erases without a question" in said.err


def test_a_file_that_is_not_the_graders_is_named_and_not_touched(
    cli: Cli, results: Path, pair: Path
) -> None:
    (results / "log.jsonl").write_text('{"student": "s003"}\n')
    said = erase(cli, results, pair, "--yes")
    assert "these still name the student; remove them yourself: log.jsonl" in said.out
    assert (results / "log.jsonl").is_file()


def test_a_name_is_found_as_pages_write_it(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("<p>O&#39;One &amp; Sons</p>")
    assert still_naming(tmp_path, "s003", "O'One & Sons") == ["page.html"]
    assert still_naming(tmp_path, "s003", "O'Two & Sons") == []


def test_a_reader_of_the_ledger_is_told_about(
    cli: Cli, results: Path, pair: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "BUSY_SECONDS", 0.1)
    reader = sqlite3.connect(results / "ledger.sqlite", isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM attempts").fetchall()
    assert "another program reads the ledger" in erase(cli, results, pair, "--yes").out
    reader.close()
    cli("history", "--in", results, "--course", pair)
    assert traces(results) == []


def test_somebody_unknown_is_named_and_nothing_happens(
    cli: Cli, results: Path, pair: Path, handed_in: Path
) -> None:
    before = pages(handed_in)
    said = cli("erase", "s009", "--in", results, "--course", pair, "--yes")
    assert (said.code, pages(handed_in)) == (2, before)
    assert "nobody is called `s009` here" in said.err


def test_a_separator_in_what_others_wrote_does_not_end_a_line() -> None:
    lines = [f'{{"submission": "{each}", "says": "a\u2028b\x85c"}}\n' for each in ("s001", "s002")]
    assert erasing._results_without("".join(lines), "s002") == lines[0]
