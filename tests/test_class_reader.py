"""Plain submissions share a reader, and nothing that one of them holds reaches another.

Readers add a note that names their process, so a test sees who has read what.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from classroom import hand_in

from grader.classroom.intake import Intake, SelectedAttempt
from grader.course.course import Course
from grader.submissions.layouts import Attempt, AttemptPart, collect, find_attempts
from grader.submissions.opening import MAX_ENTRIES
from grader.submissions.reader import class_reader, host, template
from grader.submissions.reader.exchange import ReadingLimits
from grader.submissions.reader.template import ReaderTemplate
from grader.submissions.submission import Submission

READER = Path(__file__).parent / "strange_class_reader.py"


@pytest.fixture
def strange(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Have readers name their process and, where they serve a class, do something strange."""
    made: list[ReaderTemplate] = []

    def behave(how: str) -> None:
        command = sys.executable, "-I", "-W", "ignore", str(READER), how
        monkeypatch.setattr(template, "COMMAND", command)
        made.append(ReaderTemplate())
        monkeypatch.setitem(host._readers, "fork", made[-1])

    # On a busy machine, none of them is too slow.
    monkeypatch.setattr(class_reader, "LIMITS", ReadingLimits(seconds=60.0))
    behave("nothing")
    yield behave
    for each in made:
        each.close()


def process_of(submission: Submission) -> int:
    """Return the process that has read a submission."""
    return int(submission.notes[-1].removeprefix("process "))


def class_of(folder: Path, course: Course, *students: str) -> Iterator[Submission]:
    """Hand in a plain submission of each student who has none; yield all, read one by one."""
    for student in students:
        if not (folder / student).exists():
            hand_in(folder, {f"{student}/scale.py": f"x = {student[1:].lstrip('0')}\n"})
    for attempt in find_attempts(folder, course).attempts:
        yield collect(attempt, course)


@pytest.mark.slow
@pytest.mark.usefixtures("strange")
def test_a_hundred_plain_submissions_need_two_readers(tmp_path: Path, tiny_course: Course) -> None:
    students = [f"s{number:03}" for number in range(1, 101)]
    hand_in(tmp_path, {f"{student}/scale.py": f"x = '{student}'\n" for student in students})
    attempts = find_attempts(tmp_path, tiny_course).attempts
    intake = Intake("", tuple(SelectedAttempt(one, True) for one in attempts), (), ())
    read = [submission for _, submission in intake.read(tiny_course)]
    assert [one.files["scale"] for one in read] == [f"x = '{student}'\n" for student in students]
    assert len({process_of(one) for one in read}) <= 2


@pytest.mark.usefixtures("strange")
def test_a_reader_serves_a_limited_number_of_attempts(
    tmp_path: Path, tiny_course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(class_reader, "MAX_SERVED", 3)
    read = list(class_of(tmp_path, tiny_course, *(f"s00{number}" for number in range(1, 8))))
    processes = [process_of(one) for one in read]
    assert [processes.count(each) for each in dict.fromkeys(processes)] == [3, 3, 1]


def notebook(path: Path) -> None:
    cell = {"cell_type": "code", "metadata": {}, "source": "x = 2", "outputs": []}
    notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [cell]}
    (path / "scale.ipynb").write_text(json.dumps(notebook))


def zipped(path: Path) -> None:
    with zipfile.ZipFile(path / "work.zip", "w") as archive:
        archive.writestr("scale.py", "x = 2\n")


def huge(path: Path) -> None:
    with (path / "scale.py").open("wb") as file:
        file.truncate(1 << 40)


def crowded(path: Path) -> None:
    for number in range(MAX_ENTRIES + 1):
        (path / f"{number}.py").touch()


CROWDED = "too many files"
PARSED: dict[str, Callable[[Path], None]] = {
    "a notebook": notebook,
    "a zip": zipped,
    "a file that is searched for names": lambda path: hand_in(
        path, {"homework.py": "def scale(): ...\n"}
    ),
}
REFUSED: dict[str, tuple[Callable[[Path], object], str]] = {
    "bytes that are not UTF-8": (
        lambda path: (path / "scale.py").write_bytes(b"x = '\xff'\n"),
        "is not UTF-8",
    ),
    "a pipe": (lambda path: os.mkfifo(path / "scale.py"), "is not a regular file"),
    "a huge file": (huge, "is larger than 256 KiB"),
    CROWDED: (crowded, "holds more than 10000 files"),
    "a link to a neighbour": (
        lambda path: (path / "scale.py").symlink_to("../s001/scale.py"),
        "is a link",
    ),
    "a linked folder of a neighbour": (
        lambda path: (path / "scale").symlink_to("../s001"),
        "no exercise file",
    ),
    "a hard link": (
        lambda path: (path / "scale.py").hardlink_to(path.parent / "s001" / "other.py"),
        "is a hard link",
    ),
    "nothing": (lambda path: None, "no file was handed in"),
}


@pytest.mark.slow
@pytest.mark.usefixtures("strange")
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=[pytest.mark.slow] if case == CROWDED else [])
        for case in (*PARSED, *REFUSED)
    ],
)
def test_whatever_takes_a_parser_or_has_a_problem_has_a_reader_of_its_own(
    case: str, tmp_path: Path, tiny_course: Course
) -> None:
    hand_in(tmp_path, {"s001/other.py": "", "s001/scale.py": "x = 1\n"})
    make, reason = (PARSED[case], "") if case in PARSED else REFUSED[case]
    for student in ("s002", "s004"):
        (tmp_path / student).mkdir()
        make(tmp_path / student)
    first, *own, last = class_of(tmp_path, tiny_course, "s001", "s003", "s005")
    between = own.pop(1)
    assert [one.files["scale"] for one in (first, between, last)] == [
        "x = 1\n",
        "x = 3\n",
        "x = 5\n",
    ]
    processes = [process_of(one) for one in (first, *own)]
    assert len(set(processes)) == 3
    assert process_of(between) == process_of(last) == processes[0]
    for one in own:
        assert reason in one.problems.get("scale", "")
        assert bool(one.files) == (case in PARSED)


@pytest.mark.slow
@pytest.mark.usefixtures("strange")
@pytest.mark.parametrize("codec", ["utf-7", "rot13", "latin-1", "no-such-codec"])
def test_a_file_cannot_choose_how_it_is_decoded(
    codec: str, tmp_path: Path, tiny_course: Course
) -> None:
    text = f"# -*- coding: {codec} -*-\nx = '+AGE-'\n"
    hand_in(tmp_path, {"s002/scale.py": text})
    first, chosen, last = class_of(tmp_path, tiny_course, "s001", "s003")
    assert chosen.files == {"scale": text}
    assert process_of(first) == process_of(chosen) == process_of(last)


@pytest.mark.slow
@pytest.mark.parametrize(
    "how",
    [
        *("compiles", "loads a codec", "fails", "leaves", "is killed", "sleeps", "computes"),
        *("floods", "talks nonsense"),
    ],
)
def test_nobody_is_charged_for_what_a_shared_reader_does(
    how: str,
    strange: Callable[[str], None],
    tmp_path: Path,
    tiny_course: Course,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(class_reader, "LIMITS", ReadingLimits(seconds=0.3))
    strange(how)
    read = list(class_of(tmp_path, tiny_course, "s001", "s002"))
    assert [one.files for one in read] == [{"scale": "x = 1\n"}, {"scale": "x = 2\n"}]
    assert not any(one.problems for one in read)
    assert len({process_of(one) for one in read}) == 2  # each has had a reader of its own


def test_an_answer_to_an_earlier_request_is_nobodys(
    strange: Callable[[str], None], tmp_path: Path, tiny_course: Course
) -> None:
    strange("answers twice")
    first, second, third = class_of(tmp_path, tiny_course, "s001", "s002", "s003")
    files = [one.files["scale"] for one in (first, second, third)]
    assert files == ["x = 1\n", "x = 2\n", "x = 3\n"]
    assert len({process_of(one) for one in (first, second, third)}) == 3


@pytest.mark.usefixtures("strange")
def test_a_reader_that_is_killed_between_two_attempts_costs_nobody(
    tmp_path: Path, tiny_course: Course
) -> None:
    reading = class_of(tmp_path, tiny_course, "s001", "s002", "s003", "s004")
    first = next(reading)
    os.kill(process_of(first), signal.SIGKILL)
    second, third, fourth = reading
    assert [one.files["scale"] for one in (second, third, fourth)] == [
        "x = 2\n",
        "x = 3\n",
        "x = 4\n",
    ]
    assert not any(one.problems for one in (second, third, fourth))
    assert process_of(third) == process_of(fourth) != process_of(first)


@pytest.mark.usefixtures("strange")
def test_a_folder_that_takes_the_place_of_a_class_has_readers_of_its_own(
    tmp_path: Path, tiny_course: Course
) -> None:
    folder = tmp_path / "class"
    (old,) = class_of(folder, tiny_course, "s001")
    folder.rename(tmp_path / "old")
    new, newer = class_of(folder, tiny_course, "s001", "s002")
    assert process_of(old) != process_of(new) == process_of(newer)
    assert new.files == {"scale": "x = 1\n"}
    assert newer.files == {"scale": "x = 2\n"}


def test_a_shared_reader_reads_nothing_beside_its_class(
    strange: Callable[[str], None], tmp_path: Path, tiny_course: Course
) -> None:
    hand_in(tmp_path, {"secret.py": "secret = 1\n"})
    strange("reads beside the class")
    (found,) = class_of(tmp_path / "class", tiny_course, "s001")
    assert found.files == {"scale": "Permission denied"}


def test_a_shared_reader_follows_no_link_whenever_it_was_made(
    strange: Callable[[str], None], tmp_path: Path, tiny_course: Course
) -> None:
    """As if the folder had become a link after it was looked at."""
    hand_in(tmp_path, {"s001/scale.py": "secret = 1\n"})
    (tmp_path / "s002").symlink_to("s001")
    strange("takes links for folders")
    part = AttemptPart(tmp_path / "s002", "s002")
    found = collect(Attempt("s002", (part,), root=tmp_path), tiny_course)
    assert not found.files
    assert "is a link" in found.problems["scale"]
