"""The attempts of a class are found in any layout, each student once and under one name."""

from __future__ import annotations

import contextlib
import csv
import ctypes
import json
import os
import stat
import subprocess
import zipfile
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from commandline import Cli

from grader.classroom import publishing, storage
from grader.course.course import Course
from grader.errors import RequestError
from grader.report import Person
from grader.submissions import archives, opening
from grader.submissions.layouts import (
    Attempt,
    AttemptPart,
    FoundAttempts,
    LeftOut,
    attempt_folder,
    collect,
    collection,
    find_attempts,
    open_submissions,
)
from grader.submissions.layouts.attempt import RESERVED
from grader.submissions.submission import Submission

TINY = Path(__file__).parent / "tiny"
SOFTMAX = "def masked_softmax(scores, lengths): return scores\n"
NORM = "class LayerNorm: pass\n"
STRANGE = "def unheard_of(): pass\n"


def zipped(path: Path, members: Mapping[str, str | bytes]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return path


def place(folder: Path, *names: str, text: str = SOFTMAX) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def notebook(text: str) -> str:
    cell = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    cells = [{**cell, "id": "c1", "source": text}]
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells})


def by_student(found: FoundAttempts) -> dict[str, Attempt]:
    return {attempt.student: attempt for attempt in found.attempts}


def read(folder: Path, course: Course, layout: str | None = None) -> dict[str, Submission]:
    found = find_attempts(folder, course, layout)
    return {attempt.student: collect(attempt, course) for attempt in found.attempts}


def reason(submission: Submission, course: Course) -> str:
    """Return why nothing in a submission can be graded."""
    assert (submission.files, set(submission.problems)) == ({}, set(course.names))
    (why,) = set(submission.problems.values())
    return why


# --- a plain folder -------------------------------------------------------------------------------


def test_a_student_has_a_folder_a_zip_a_file_or_a_notebook(tmp_path: Path, course: Course) -> None:
    place(tmp_path, "s001/masked_softmax.py")
    zipped(tmp_path / "s002.ZIP", {"home/mine/masked_softmax.py": SOFTMAX})
    place(tmp_path, "s003.py")
    place(tmp_path, "s004.ipynb", text=notebook(SOFTMAX + NORM))
    place(tmp_path, ".hidden.py", "desktop.ini", "__MACOSX/s009/masked_softmax.py", "readme.md")
    found = find_attempts(tmp_path, course)
    assert found.layout == "plain"
    assert found.left_out == (
        LeftOut(".hidden.py", "begins with a dot"),
        LeftOut("readme.md", "is neither a folder nor a zip"),
    )
    submissions = read(tmp_path, course)
    assert {student: set(one.files) for student, one in submissions.items()} == {
        "s001": {"masked_softmax"},
        "s002": {"masked_softmax"},
        "s003": {"masked_softmax"},
        "s004": {"masked_softmax", "layer_norm"},
    }
    assert submissions["s004"].paths == dict.fromkeys(
        ("masked_softmax", "layer_norm"), "s004.ipynb"
    )
    assert submissions["s003"].notes == (
        "s003.py was used for masked_softmax because of what it defines",
    )


def test_one_file_is_used_for_every_exercise_that_it_defines_at_top_level(
    tmp_path: Path, course: Course
) -> None:
    text = (
        f'"""\ndef feed_forward(): pass\n"""\n{NORM}def lookup(): pass\nmasked_softmax = lookup\n'
    )
    place(tmp_path, "s001.py", text=text + "def f():\n    class TransformerBlock: pass\n")
    found = read(tmp_path, course)["s001"]
    assert set(found.files) == {"layer_norm", "dictionary_lookup", "masked_softmax"}
    assert set(found.files.values()) == {(tmp_path / "s001.py").read_text()}


def test_one_file_with_a_syntax_error_is_used_for_what_it_begins_to_define(
    tmp_path: Path, course: Course
) -> None:
    place(tmp_path, "s001.py", text=f"{SOFTMAX}{NORM}x = (\n")
    assert set(read(tmp_path, course)["s001"].files) == {"layer_norm", "masked_softmax"}


def test_a_file_that_defines_no_exercise_is_reported(tmp_path: Path, course: Course) -> None:
    place(tmp_path, "s001.py", text=STRANGE)
    place(tmp_path, "s002.ipynb", text=notebook(STRANGE))
    found = read(tmp_path, course)
    assert "no exercise file in s001.py; s001.py is not an exercise file" in reason(
        found["s001"], course
    )
    assert "s002.ipynb is not an exercise file" in reason(found["s002"], course)


@pytest.mark.parametrize(
    "file", ["masked_softmax.py", "layer_norm/solution.py", "layer_norm.ipynb"]
)
def test_a_folder_of_exercises_is_not_a_class(file: str, tmp_path: Path, course: Course) -> None:
    place(tmp_path, file, "readme.md", "helpers.py")
    with pytest.raises(RequestError, match="looks like one submission") as raised:
        find_attempts(tmp_path, course)
    assert file in raised.value.message
    assert raised.value.remedy == f"grader check {tmp_path}"


@pytest.mark.parametrize("file", ["scale.py", "scale.ipynb", "scale/solution.py"])
def test_an_exercise_beside_the_students_folders_is_nobodys(
    file: str, tmp_path: Path, tiny_course: Course
) -> None:
    place(tmp_path, file, "s001/scale.py")
    zipped(tmp_path / "s002.zip", {"scale.py": ""})
    found = find_attempts(tmp_path, tiny_course)
    assert list(by_student(found)) == ["s001", "s002"]
    what = file.partition("/")[0]
    assert found.left_out == (LeftOut(what, "is an exercise that lies beside the students' work"),)


def test_a_hidden_folder_is_said_unless_a_system_made_it(
    tmp_path: Path, tiny_course: Course
) -> None:
    place(tmp_path, "s001/scale.py", ".s002/scale.py", ".DS_Store", ".git/config", "._s001")
    found = find_attempts(tmp_path, tiny_course)
    assert list(by_student(found)) == ["s001"]
    assert found.left_out == (LeftOut(".s002", "begins with a dot"),)


def test_of_many_stray_files_the_first_are_named_and_the_others_counted(
    tmp_path: Path, tiny_course: Course
) -> None:
    place(tmp_path, "s001/scale.py", *(f"{number:03}.txt" for number in range(50)))
    (tmp_path / "link").symlink_to(tmp_path / "s001")
    link, *first, more = find_attempts(tmp_path, tiny_course).left_out
    assert [one.what for one in first] == [f"{number:03}.txt" for number in range(20)]
    assert more == LeftOut("each of 30 more", "is neither a folder nor a zip")
    assert link == LeftOut("link", "is a link")


def test_no_student_has_the_name_of_a_page(tmp_path: Path, tiny_course: Course) -> None:
    pages = [publishing.REPORTS, publishing.GRADES, publishing.RESULTS, publishing.DASHBOARD]
    pages += [storage.FILE, storage.LOCK, "index", "Grades", "s001.attempt-1", "100.ATTEMPT-12"]
    place(tmp_path, "s001/scale.py", *(f"{page}/scale.py" for page in pages))
    students = {
        one.parts[0].name: one.student for one in find_attempts(tmp_path, tiny_course).attempts
    }
    assert len(set(students.values())) == len(pages) + 1
    for page in pages:
        assert students[page].startswith(f"{page}-")
    for student in students.values():
        assert not RESERVED.fullmatch(student)


def test_no_two_students_get_the_same_name(tmp_path: Path, tiny_course: Course) -> None:
    names = ("s001", "S001", "=1+1", "\x01s001", "bob\nbob  10 of 10", "n" * 250)
    place(tmp_path, *(f"{name}/scale.py" for name in names))
    zipped(tmp_path / "s001.zip", {"scale.py": ""})
    attempts = find_attempts(tmp_path, tiny_course).attempts
    assert sorted(attempts, key=lambda one: (one.student, one.number)) == list(attempts)
    students = {attempt.parts[0].name: attempt.student for attempt in attempts}
    assert (students["s001"], students["S001"], students["=1+1"]) == ("s001", "S001", "=1+1")
    assert students["\x01s001"].startswith("s001-")
    assert students["s001.zip"].startswith("s001-")
    assert students["bob\nbob  10 of 10"].startswith("bob bob 10 of 10-")
    assert len(students["n" * 250]) < 140
    assert len(set(students.values())) == 7
    assert all(student.isprintable() for student in students.values())


def test_no_student_can_take_the_hashed_name_of_another(
    tmp_path: Path, tiny_course: Course
) -> None:
    place(tmp_path, "\x01s001/scale.py")
    (marked,) = by_student(find_attempts(tmp_path, tiny_course))
    place(tmp_path, f"{marked}/scale.py", text="mine = 1\n")
    found = read(tmp_path, tiny_course)
    assert len(found) == 2
    assert found[marked].files == {"scale": "mine = 1\n"}


def test_links_and_pipes_are_left_out_and_reported(tmp_path: Path, tiny_course: Course) -> None:
    place(tmp_path, "s001/scale.py", "out/reports/s001.html")
    (tmp_path / "s002").symlink_to(tmp_path / "s001")
    os.mkfifo(tmp_path / "s003.py")
    found = find_attempts(tmp_path, tiny_course, without=tmp_path / "out")
    assert [attempt.student for attempt in found.attempts] == ["s001"]
    assert found.left_out == (
        LeftOut("s002", "is a link"),
        LeftOut("s003.py", "is not a regular file"),
    )


def plant(kind: str, at: Path, secret: Path) -> None:
    """Put something in place of a file that nobody may open there."""
    at.parent.mkdir(parents=True, exist_ok=True)
    if kind == "pipe":
        os.mkfifo(at)
    elif kind == "socket":
        os.mknod(at, stat.S_IFSOCK | 0o600)
    elif kind == "hard link":
        os.link(secret, at)
    elif kind == "link":
        at.symlink_to(secret)
    elif kind == "folder":
        at.mkdir()


REFUSED = {
    "pipe": "is not a regular file",
    "socket": "is not a regular file",
    "folder": "is not a regular file",
    "hard link": "is a hard link (hand in a copy)",
    "link": "is a link",
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_only_looks_like_a_zip_is_left_out_of_that_submission(
    kind: str, tmp_path: Path, tiny_course: Course
) -> None:
    secret = zipped(tmp_path / "secret.zip", {"scale.py": "secret = 1\n"})
    place(tmp_path / "class", "s001/scale.py", "s002/scale.py")
    plant(kind, tmp_path / "class/s001/b.zip", secret)
    plant(kind, tmp_path / "class/s003/b.zip", secret)
    zipped(tmp_path / "class/s003/a.zip", {"other.py": ""})
    found = read(tmp_path / "class", tiny_course)
    assert found["s001"].files == found["s002"].files == {"scale": SOFTMAX}
    assert f"b.zip {REFUSED[kind]} and was left out" in found["s001"].notes
    assert found["s002"].notes == ()
    assert not found["s003"].files
    if kind != "folder":
        assert f"b.zip {REFUSED[kind]} and was left out" in reason(found["s003"], tiny_course)


@pytest.mark.parametrize("kind", REFUSED)
def test_what_only_looks_like_an_exercise_is_left_out(
    kind: str, tmp_path: Path, tiny_course: Course
) -> None:
    secret = place(tmp_path, "secret.py", text="secret = 1\n") / "secret.py"
    plant(kind, tmp_path / "class/s001/scale.py", secret)
    plant(kind, tmp_path / "class/s002/deep/scale/solution.py", secret)
    found = read(tmp_path / "class", tiny_course)
    assert f"scale.py {REFUSED[kind]} and was left out" in reason(found["s001"], tiny_course)
    assert f"solution.py {REFUSED[kind]} and was left out" in reason(found["s002"], tiny_course)


def test_a_hard_link_in_the_class_folder_is_nobodys_work(
    tmp_path: Path, tiny_course: Course
) -> None:
    mine = zipped(tmp_path / "s001.zip", {"scale.py": SOFTMAX})
    (tmp_path / "s002").mkdir()
    os.link(mine, tmp_path / "s002/mine.zip")
    os.link(place(tmp_path, "s003.py") / "s003.py", tmp_path / "s004.py")
    found = read(tmp_path, tiny_course)
    for student in ("s001", "s002", "s003", "s004"):  # nobody can tell whose it was first
        assert "is a hard link (hand in a copy)" in reason(found[student], tiny_course)


def test_no_name_on_the_way_to_a_file_may_be_a_link(tmp_path: Path) -> None:
    place(tmp_path, "secret/deep/scale.py", "class/s001/scale.py")
    (tmp_path / "class/s001/here").symlink_to(tmp_path / "secret")
    for path in ("here/deep/scale.py", "here", "../../secret/deep/scale.py", "here/../scale.py"):
        with pytest.raises(opening.NotOpened):
            opening.open_file(tmp_path / "class/s001" / path, tmp_path / "class")
    with pytest.raises(opening.NotOpened, match="is a link"):
        opening.OwnFolder(tmp_path / "class").entries(tmp_path / "class/s001/here/deep")
    (tmp_path / "teacher").symlink_to(tmp_path / "class")  # but a teacher may name a link
    with opening.open_file(tmp_path / "teacher/s001/scale.py", tmp_path / "teacher") as file:
        assert file.read() == SOFTMAX.encode()


def test_a_file_that_grows_is_read_up_to_its_limit(tmp_path: Path) -> None:
    file = place(tmp_path, "scale.py", text="x" * 11) / "scale.py"
    assert opening.read_file(file, tmp_path, 11) == b"x" * 11
    with pytest.raises(opening.NotOpened, match="is larger than 0 KiB"):
        opening.read_file(file, tmp_path, 10)


@pytest.mark.parametrize("inside", ["", "hw/"])
def test_a_folder_of_too_many_files_costs_its_student_alone(
    inside: str, tmp_path: Path, tiny_course: Course
) -> None:
    place(tmp_path, f"s001/{inside}scale.py", "s002/scale.py")
    for number in range(opening.MAX_ENTRIES):
        os.close(os.open(tmp_path / f"s001/{inside}{number}.txt", os.O_CREAT))
    found = read(tmp_path, tiny_course)
    assert found["s002"].files == {"scale": SOFTMAX}
    assert reason(found["s001"], tiny_course).startswith("s001 holds more than 10000 files")


def test_more_zips_than_anybody_hands_in_are_not_opened(
    tmp_path: Path, tiny_course: Course
) -> None:
    for number in range(30):
        zipped(tmp_path / f"s001/{number:02}.zip", {f"{number}.txt": ""})
    place(tmp_path, "s001/scale.py")
    found = read(tmp_path, tiny_course)["s001"]
    assert found.files == {"scale": SOFTMAX}
    said = [note for note in found.notes if "exceeds the limits of one submission" in note]
    assert len(said) == 30 - collection.MAX_ZIPS


@contextlib.contextmanager
def without_roots_rights() -> Iterator[None]:
    """Do without the right to read every file, which root has."""
    if os.geteuid() != 0:
        yield
        return
    libc = ctypes.CDLL(None)
    header, had = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    assert libc.capget(header, had) == 0
    reduced = (ctypes.c_uint32 * 6)(had[0] & ~0b110, *had[1:])
    assert libc.capset(header, reduced) == 0
    try:
        yield
    finally:
        assert libc.capset(header, had) == 0


@pytest.mark.parametrize("unreadable", ["s001", "s001/scale.py", "s001/hw.zip", "s001/.git"])
def test_what_cannot_be_read_is_that_students_problem(
    unreadable: str, tmp_path: Path, tiny_course: Course
) -> None:
    names = [f"s00{number}/{name}" for number in (1, 2) for name in ("scale.py", ".git/HEAD")]
    place(tmp_path, *names)
    if unreadable.endswith(".zip"):
        zipped(tmp_path / unreadable, {"other.py": ""})
    (tmp_path / unreadable).chmod(0)
    with without_roots_rights():
        found = {
            one.student: collection.read_attempt(one, tiny_course).submission
            for one in find_attempts(tmp_path, tiny_course).attempts
        }
    (tmp_path / unreadable).chmod(0o755)
    assert found["s002"].files == {"scale": SOFTMAX}
    if unreadable in ("s001", "s001/scale.py"):
        assert "Permission denied" in reason(found["s001"], tiny_course)
    else:
        assert found["s001"].files == {"scale": SOFTMAX}
    if unreadable == "s001/hw.zip":
        assert any("Permission denied" in note for note in found["s001"].notes)


@pytest.mark.parametrize(
    ("folder", "layout", "said", "remedy"),
    [
        ("nowhere", None, "there is no folder", "grader batch --help"),
        ("empty", None, "holds no submissions", "pass a folder, or a zip,"),
        ("notes", None, "holds no submissions; a.txt is neither a folder nor", "pass a folder"),
        ("notes", "canvas", "a.txt is not named as Canvas names files", "pass a folder"),
        ("notes", "canvass", "there is no layout `canvass`; did you mean `canvas`?", "one of"),
    ],
)
def test_a_wrong_request_names_the_problem(
    folder: str, layout: str | None, said: str, remedy: str, tmp_path: Path, course: Course
) -> None:
    (tmp_path / "empty").mkdir()
    place(tmp_path, "notes/a.txt")
    with pytest.raises(RequestError) as raised:
        find_attempts(tmp_path / folder, course, layout)
    assert said in raised.value.message
    assert raised.value.remedy.startswith(remedy)


# --- collecting an attempt ------------------------------------------------------------------------


def test_the_same_files_are_the_same_submission_in_any_folder_or_zip(
    tmp_path: Path, course: Course
) -> None:
    place(tmp_path, "s001/masked_softmax.py", "s001/layer_norm/solution.py")
    place(tmp_path, "s002/my/home work/masked_softmax.py", "s002/my/home work/layer_norm.py")
    zipped(tmp_path / "s003.zip", {"masked_softmax.py": SOFTMAX, "layer_norm/solution.py": SOFTMAX})
    zipped(tmp_path / "s004/hw.zip", {"x/masked_softmax.py": SOFTMAX, "x/layer_norm.py": SOFTMAX})
    found = read(tmp_path, course)
    assert len({one.hash for one in found.values()}) == 1
    assert len(found["s001"].hash) == 32
    paths = {"masked_softmax": "masked_softmax.py", "layer_norm": "layer_norm/solution.py"}
    assert found["s001"].paths == found["s003"].paths == paths
    flat = {"masked_softmax": "masked_softmax.py", "layer_norm": "layer_norm.py"}
    assert found["s002"].paths == found["s004"].paths == flat
    assert [found[name].name for name in sorted(found)] == sorted(found)


def test_several_zips_of_a_student_make_one_submission(tmp_path: Path, course: Course) -> None:
    zipped(tmp_path / "s001/a.zip", {"a/masked_softmax.py": SOFTMAX})
    zipped(tmp_path / "s001/b.zip", {"layer_norm/solution.py": NORM, "masked_softmax.py": "x"})
    place(tmp_path, "s001/feed_forward.py", "s001/.venv/masked_softmax.py")
    found = read(tmp_path, course)["s001"]
    assert set(found.files) == {"masked_softmax", "layer_norm", "feed_forward"}
    assert found.files["masked_softmax"] == SOFTMAX
    assert "masked_softmax.py appears again in b.zip and was left out" in found.notes


def test_a_broken_zip_affects_no_other_file(tmp_path: Path, course: Course) -> None:
    place(tmp_path, "s001/masked_softmax.py")
    place(tmp_path, "s001/more.zip", "s002.zip", text="PK\x03\x04 this is no zip")
    found = read(tmp_path, course)
    assert set(found["s001"].files) == {"masked_softmax"}
    assert any("more.zip: the archive cannot be read" in note for note in found["s001"].notes)
    assert reason(found["s002"], course).startswith(
        "s002.zip: the archive cannot be read: File is not a zip file"
    )


def test_a_link_beside_a_zip_is_not_followed(tmp_path: Path, course: Course) -> None:
    secret = place(tmp_path / "elsewhere", "masked_softmax.py", text="secret = 1\n")
    zipped(tmp_path / "class/s001/hw.zip", {"layer_norm.py": NORM})
    (tmp_path / "class/s001/masked_softmax.py").symlink_to(secret / "masked_softmax.py")
    (tmp_path / "class/s001/feed_forward").symlink_to(secret)
    os.link(secret / "masked_softmax.py", tmp_path / "class/s001/feed_forward.py")
    found = read(tmp_path / "class", course)["s001"]
    assert found.files == {"layer_norm": NORM}
    assert {
        "masked_softmax.py is a link and was left out",
        "feed_forward is a link and was left out",
        "feed_forward.py is a hard link (hand in a copy) and was left out",
    } <= set(found.notes)


def test_a_folder_is_used_in_place_and_a_copy_is_deleted_after_use(tmp_path: Path) -> None:
    place(tmp_path, "s001/scale.py", "s002.py")
    with attempt_folder(Attempt("s001", (AttemptPart(tmp_path / "s001", "s001"),))) as folder:
        assert folder == tmp_path / "s001"
    with attempt_folder(
        Attempt("s002", (AttemptPart(tmp_path / "s002.py", "scale.py"),))
    ) as folder:
        assert [path.name for path in folder.iterdir()] == ["scale.py"]
    assert not folder.exists()


def test_a_part_is_never_copied_outside_the_attempts_folder(tmp_path: Path) -> None:
    place(tmp_path, "s001.py")
    parts = (
        AttemptPart(tmp_path / "s001.py", "../../evil.py"),
        AttemptPart(tmp_path / "s001.py", ".."),
    )
    with attempt_folder(Attempt("s001", parts)) as folder:
        assert {path.name for path in folder.iterdir()} <= {"evil.py", "s001.py"}
        assert not (folder.parent.parent / "evil.py").exists()


def test_no_reason_for_students_names_a_folder_of_the_teachers_machine(
    tmp_path: Path, course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    place(tmp_path, "s001/notes.txt", "s002/a/layer_norm.py", "s002/b/layer_norm.py")
    zipped(tmp_path / "s003/hw.zip", {"notes.py": STRANGE})
    (tmp_path / "s004").mkdir()
    found = read(tmp_path, course)
    assert reason(found["s001"], course) == "no exercise file in s001"
    several = "several folders hold exercises, so none was used: a, b"
    assert several in reason(found["s002"], course)
    assert reason(found["s003"], course).startswith("no exercise file in s003; notes.py is not")
    assert reason(found["s004"], course) == "no file was handed in"

    def denied(paths: list[Path], *_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(paths[0] / "layer\nnorm.py"))

    monkeypatch.setattr(collection, "read_submission", denied)
    found |= {
        one.student: collection.read_attempt(one, course).submission
        for one in find_attempts(tmp_path, course).attempts
    }
    assert reason(found["s001"], course) == "Permission denied: 's001/layer norm.py'"
    assert reason(found["s003"], course) == "Permission denied: 's003'"
    assert not any(str(tmp_path) in str(one) or "/tmp" in str(one) for one in found.values())


def test_a_long_list_of_left_out_files_is_shortened(tmp_path: Path, course: Course) -> None:
    zipped(tmp_path / "s001.zip", {f"{n}.tar": "" for n in range(300)} | {"layer_norm.py": NORM})
    notes = read(tmp_path, course)["s001"].notes
    assert (len(notes), notes[-1]) == (21, "and 280 more")


# --- Canvas ---------------------------------------------------------------------------------------


def test_a_canvas_download_is_read_by_its_file_names(tmp_path: Path, course: Course) -> None:
    place(tmp_path, "onestudent_501_9001_masked_softmax.py", "onestudent_501_9002_layer_norm.py")
    place(tmp_path, "twó_ﬁn_LATE_502_9003_masked_softmax.py", "नीति_503_9004_my_hand_in.py")
    zipped(tmp_path / "s004_504_9005_home work.zip", {"x/layer_norm.py": NORM})
    place(tmp_path, "s005_505_9006_report.pdf", "s006_506_9007_hw.rar", "readme.md")
    found = find_attempts(tmp_path, course)
    assert (found.layout, len(found.attempts)) == ("canvas", 6)
    assert found.left_out == (LeftOut("readme.md", "is not named as Canvas names files"),)
    people = by_student(found)
    assert people["501"].person == Person(name="onestudent")
    assert people["502"].person.name == "twó_ﬁn"
    assert {student for student, one in people.items() if one.late} == {"502"}
    submissions = read(tmp_path, course)
    assert submissions["501"].paths == {
        "masked_softmax": "masked_softmax.py",
        "layer_norm": "layer_norm.py",
    }
    assert set(submissions["503"].files) == {"masked_softmax"}
    assert set(submissions["504"].files) == {"layer_norm"}
    assert (
        reason(submissions["505"], course) == "report.pdf is neither Python, a notebook nor a zip"
    )
    assert "hw.rar is an archive that is not opened here" in reason(submissions["506"], course)


def test_an_anonymous_canvas_download_is_read_too(tmp_path: Path, course: Course) -> None:
    place(tmp_path, "anon_aB3xZ_9001_layer_norm.py", "LATE_anon_12345_9002_layer_norm.py")
    people = by_student(find_attempts(tmp_path, course))
    assert {student: one.late for student, one in people.items()} == {
        "anon_aB3xZ": False,
        "anon_12345": True,
    }
    assert people["anon_aB3xZ"].person == Person()


def test_a_text_entry_is_named_in_the_report(tmp_path: Path, course: Course) -> None:
    place(tmp_path, "s001_501_text.html", "s002_LATE_502_link.html", "s003_503_9_layer_norm.py")
    found = find_attempts(tmp_path, course)
    assert found.left_out == (
        LeftOut("s001_501_text.html", "is a text entry"),
        LeftOut("s002_LATE_502_link.html", "is a link entry"),
    )
    assert by_student(found)["502"].late
    submissions = read(tmp_path, course)
    assert reason(submissions["501"], course).startswith("a text entry was handed in")
    assert reason(submissions["502"], course).startswith("a link was handed in")


def test_later_versions_of_a_file_are_later_attempts(tmp_path: Path, course: Course) -> None:
    place(tmp_path, "s001_501_1_masked_softmax.py", "s001_501_2_layer_norm.py", text="first\n")
    place(tmp_path, "s001_501_3_masked_softmax-1.py", text="second\n")
    place(tmp_path, "s001_501_4_masked_softmax-2.py", "s001_501_5_feed_forward-7.py", text="third")
    attempts = find_attempts(tmp_path, course).attempts
    assert [(attempt.student, attempt.number) for attempt in attempts] == [
        ("501", 1),
        ("501", 2),
        ("501", 3),
    ]
    first, second, third = (collect(attempt, course) for attempt in attempts)
    assert first.files == {"masked_softmax": "first\n", "layer_norm": "first\n"}
    assert second.files == {"masked_softmax": "second\n", "layer_norm": "first\n"}
    assert third.files == {
        "masked_softmax": "third",
        "layer_norm": "first\n",
        "feed_forward": "third",
    }


def test_a_file_with_one_version_is_one_attempt_whatever_its_number(
    tmp_path: Path, course: Course
) -> None:
    place(tmp_path, "s001_501_1_masked_softmax-1.py", "s001_501_2_layer_norm.py")
    place(tmp_path, "s001_501_3_part-1.py", "s001_501_4_part-2.py", text=STRANGE)
    zipped(tmp_path / "s002_502_5_hw-3.zip", {"layer_norm.py": NORM})
    attempts = find_attempts(tmp_path, course).attempts
    assert [(attempt.student, attempt.number) for attempt in attempts] == [("501", 1), ("502", 1)]
    names = {part.name for part in attempts[0].parts}
    assert names == {"masked_softmax.py", "layer_norm.py", "part-1.py", "part-2.py"}
    assert set(collect(attempts[0], course).files) == {"masked_softmax", "layer_norm"}
    assert set(collect(attempts[1], course).files) == {"layer_norm"}


def test_of_two_files_with_one_name_the_later_attachment_is_used(
    tmp_path: Path, course: Course
) -> None:
    place(tmp_path, "s001_501_999_layer_norm.py", text="old\n")
    place(tmp_path, "s001_501_1000_layer_norm.py", text="new\n")
    assert read(tmp_path, course)["501"].files == {"layer_norm": "new\n"}


def test_a_hostile_canvas_name_affects_no_other_student(tmp_path: Path, course: Course) -> None:
    place(tmp_path, "s001_501_1_masked_softmax.py", "s002_502_2_=cmd|' x'\n.py", "s003_503_3_..")
    (tmp_path / "s004_504_4_layer_norm.py").symlink_to("/etc/passwd")
    found = find_attempts(tmp_path, course)
    assert [attempt.student for attempt in found.attempts] == ["501", "502", "503"]
    assert LeftOut("s004_504_4_layer_norm.py", "is a link") in found.left_out
    submissions = read(tmp_path, course)
    assert set(submissions["502"].files) == {"masked_softmax"}
    assert "\n" not in "".join(submissions["502"].notes) + "".join(
        submissions["502"].paths.values()
    )
    assert ".. is neither" in reason(submissions["503"], course)


def test_dates_in_plain_names_are_not_canvas_numbers(tmp_path: Path, course: Course) -> None:
    place(tmp_path, "s001-hand.in_2026_11_final.py", "s002-hand.in_2026_12_final.py")
    assert find_attempts(tmp_path, course).layout == "plain"


# --- Moodle ---------------------------------------------------------------------------------------


def test_a_moodle_download_is_read_by_its_folder_names(tmp_path: Path, course: Course) -> None:
    kind = "assignsubmission_file"
    place(tmp_path, f"Student One_11_{kind}/layer_norm.py", f"Two_12_{kind}_/hw/layer_norm.py")
    place(tmp_path, f"user_3_Student Three_13_{kind}/masked_softmax.py")
    zipped(tmp_path / f"Four_14_{kind}/hw.zip", {"hw/layer_norm.py": NORM})
    place(tmp_path, "Five_15_assignsubmission_onlinetext/onlinetext.html", "grades.csv")
    place(tmp_path, f"Default group_{kind}/layer_norm.py")
    place(tmp_path, "Student One_11_assignsubmission_onlinetext/onlinetext.html")
    found = find_attempts(tmp_path, course)
    assert found.layout == "moodle"
    people = by_student(found)
    assert people["11"].person == Person(name="Student One")
    assert people["13"].person == Person(name="Student Three", login="user_3")
    assert [one.what for one in found.left_out if "named" in one.why] == ["grades.csv"]
    submissions = read(tmp_path, course)
    assert {student: list(one.files) for student, one in submissions.items() if one.files} == {
        "11": ["layer_norm"],
        "12": ["layer_norm"],
        "13": ["masked_softmax"],
        "14": ["layer_norm"],
        "Default group": ["layer_norm"],
    }
    assert any("a text entry was handed in" in note for note in submissions["11"].notes)
    assert reason(submissions["15"], course).startswith("a text entry was handed in")


def test_a_moodle_download_without_folders_is_read_too(tmp_path: Path, course: Course) -> None:
    place(tmp_path, *(f"One_11_assignsubmission_file_{name}.py" for name in course.names[:2]))
    place(tmp_path, "Two_12_assignsubmission_file_my_own.txt")
    found = read(tmp_path, course)
    assert set(found["11"].files) == set(course.names[:2])
    assert "my_own.txt is neither Python" in reason(found["12"], course)


def test_a_student_may_be_called_like_a_moodle_folder(tmp_path: Path, course: Course) -> None:
    kind = "assignsubmission_file"
    place(tmp_path, f"x_11_{kind}_y_12_{kind}_/layer_norm.py", text="liar\n")
    place(tmp_path, f"One_11_{kind}_/masked_softmax.py", f"13_{kind}_/layer_norm.py")
    place(tmp_path, f"Three_13_{kind}_/layer_norm.py")
    found = read(tmp_path, course)
    assert list(found["11"].files) == ["masked_softmax"]
    assert found["12"].files == {"layer_norm": "liar\n"}
    assert len(found) == 4


def test_a_file_that_could_be_two_students_is_neithers(tmp_path: Path, course: Course) -> None:
    kind = "assignsubmission_file"
    place(tmp_path, f"One_11_{kind}_layer_norm.py", f"Two_12_{kind}_masked_softmax.py")
    place(tmp_path, f"Two_12_{kind}_x_11_{kind}_layer_norm.py", text="liar\n")
    found = find_attempts(tmp_path, course)
    assert [one.why for one in found.left_out] == [
        "is named so that it could belong to two students"
    ]
    assert read(tmp_path, course)["11"].files == {"layer_norm": SOFTMAX}


# --- Gradescope -----------------------------------------------------------------------------------

METADATA = """---
submission_11:
  :submitters:
  - :name: Student One
    :email: s001@example.org
    :sid: '0042'
  :created_at: 2026-11-02 10:00:00.123456789 Z
  :score: 1.5
submission_12:
  :submitters:
  - :name: Student One
    :email: S001@example.org
    :sid: '0042'
  - :name: Student Two
    :email: s002@example.org
    :sid: 'same'
  :created_at: !ruby/object:ActiveSupport::TimeWithZone
    utc: 2026-11-01 09:00:00 Z
submission_13:
  :submitters:
  - :name: Student Three
    :email: s003@example.org
    :sid: 'same'
  :created_at: 2026-99-99 10:00:00 Z
submission_14: !ruby/object:Nonsense 7
submission_15:
  :submitters: nobody
  :created_at: [1]
submission_99:
  :submitters: []
../../etc/passwd:
  :submitters: []
17: {}
"""


@pytest.fixture
def gradescope(tmp_path: Path) -> Path:
    folder = tmp_path / "assignment_7_export"
    place(folder, *(f"submission_{number}/layer_norm.py" for number in range(11, 17)))
    return place(folder, "submission_metadata.yml", text=METADATA)


def test_gradescopes_metadata_names_the_submitters(gradescope: Path, course: Course) -> None:
    found = find_attempts(place(gradescope, "notes.txt"), course)
    assert found.layout == "gradescope"
    one = Person("Student One", "s001@example.org", number="0042")
    earlier = datetime(2026, 11, 1, 9, tzinfo=UTC)
    later = datetime(2026, 11, 2, 10, 0, 0, 123456, tzinfo=UTC)
    attempts = [(a.student, a.number, a.submitted) for a in found.attempts]
    assert attempts == [
        ("0042", 1, earlier),
        ("0042", 2, later),
        ("14", 1, None),
        ("15", 1, None),
        ("16", 1, None),
        ("s002@example.org", 1, earlier),
        ("s003@example.org", 1, None),
    ]
    assert found.attempts[1].person == one
    assert found.attempts[0].parts == found.attempts[5].parts
    assert {one.what: one.why for one in found.left_out} == {
        "notes.txt": "is not named as Gradescope names submissions",
        "submission_99": "is listed in submission_metadata.yml but missing from the folder",
        "../../etc/passwd": "is listed in submission_metadata.yml but missing from the folder",
    }
    assert all(collect(attempt, course).files for attempt in found.attempts)


def test_one_students_metadata_does_not_make_a_class_gradescopes(
    tmp_path: Path, course: Course
) -> None:
    place(tmp_path, "s001/layer_norm.py", "s002/layer_norm.py", "submission_11/layer_norm.py")
    place(tmp_path, "submission_metadata.yml", text=METADATA)
    found = find_attempts(tmp_path, course)
    assert (found.layout, list(by_student(found))) == ("plain", ["s001", "s002", "submission_11"])


@pytest.mark.parametrize("kind", ["pipe", "link", "hard link"])
def test_metadata_that_may_not_be_opened_is_left_out(
    kind: str, gradescope: Path, course: Course
) -> None:
    file = gradescope / "submission_metadata.yml"
    secret = file.rename(gradescope.parent / "elsewhere.yml")
    plant(kind, file, secret)
    found = find_attempts(gradescope, course)
    assert list(by_student(found)) == ["11", "12", "13", "14", "15", "16"]
    assert found.left_out[0].why.startswith(REFUSED[kind])


def test_a_school_number_is_not_a_submission_number(gradescope: Path, course: Course) -> None:
    text = "submission_11: {':submitters': [{':name': One, ':sid': '12'}]}\n"
    place(gradescope, "submission_metadata.yml", text=text)
    attempts = find_attempts(gradescope, course).attempts
    assert [attempt.number for attempt in attempts] == [1] * 6
    assert len(by_student(find_attempts(gradescope, course))) == 6


@pytest.mark.parametrize("sid", ["../../x", "a/b", "..", ".ssh", "=1+1\\n", "\\uD800", "x" * 300])
def test_a_school_number_that_cannot_be_a_file_name_gets_a_hash(
    sid: str, gradescope: Path, course: Course
) -> None:
    text = f'submission_11: {{":submitters": [{{":sid": "{sid}"}}]}}\n'
    place(gradescope, "submission_metadata.yml", text=text)
    for attempt in find_attempts(gradescope, course).attempts:
        assert "/" not in attempt.student
        assert not attempt.student.startswith(".")
        assert attempt.student.isprintable()
        assert len(attempt.student.encode()) < 140


BROKEN = {
    "no YAML": ("a: [\n", "is not readable YAML (line "),
    "a list": ("- 1\n", "lists no submissions"),
    "nothing": ("", "lists no submissions"),
    "a tab": ("a:\n\t- b\n", "is not readable YAML (line 2)"),
    "deep nesting": ("[" * 200_000, "is nested too deeply"),
    "deep lists": ("- " * 200_000, "is nested too deeply"),
    "control characters": ("a: \x00\n", "is not readable YAML"),
    "code": ("a: !!python/object/apply:os.system ['true']\n", "is not readable YAML"),
    "merges of merges": (
        "a0: &a0 {x: 1}\n"
        + "".join(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}\n" for n in range(1, 30)),
        "is not readable YAML",
    ),
}


@pytest.mark.parametrize("what", BROKEN)
def test_without_metadata_students_are_named_by_submission_number(
    what: str, gradescope: Path, course: Course
) -> None:
    text, said = BROKEN[what]
    place(gradescope, "submission_metadata.yml", text=text)
    found = find_attempts(gradescope, course)
    assert list(by_student(found)) == ["11", "12", "13", "14", "15", "16"]
    (left_out,) = found.left_out
    assert left_out.what == "submission_metadata.yml"
    assert said in left_out.why
    assert "students are named by their submission numbers" in left_out.why
    (gradescope / "submission_metadata.yml").unlink()
    assert find_attempts(gradescope, course) == FoundAttempts("gradescope", found.attempts)


# --- clones ---------------------------------------------------------------------------------------

WHEN = datetime(2026, 11, 5, 23, 30, tzinfo=timezone(timedelta(hours=1)))


def clone(folder: Path, *, when: datetime = WHEN, form: str = "sha1") -> Path:
    """Make a repository with one commit."""
    place(folder, "layer_norm.py", text=NORM)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_COMMITTER_DATE": when.isoformat(),
        "GIT_AUTHOR_DATE": "2020-01-01T00:00:00Z",
    }
    who = ["-c", "user.name=s001", "-c", "user.email=s001@example.org"]
    for command in (
        ["init", "-q", "-b", "main", f"--object-format={form}"],
        ["add", "layer_norm.py"],
        [*who, "commit", "-q", "-m", "Hand in\n\ncommitter s002 <x> 1 +0000"],
    ):
        subprocess.run(["git", *command], cwd=folder, env=environment, check=True)
    return folder


def test_clones_are_named_by_login_and_have_the_time_of_their_last_commit(
    tmp_path: Path, course: Course
) -> None:
    folder = tmp_path / "lab-1-submissions"
    clone(folder / "lab-1-s001")
    clone(folder / "lab-1-s-002", form="sha256")
    packed = clone(folder / "lab-1-s003")
    subprocess.run(["git", "-C", packed, "pack-refs", "--all"], check=True)
    subprocess.run(["git", "-C", packed, "gc", "-q"], check=True)
    detached = clone(folder / "lab-1-s004")
    subprocess.run(["git", "-C", detached, "checkout", "-q", "--detach"], check=True)
    place(folder, "lab-1-s005/layer_norm.py", "grades.csv")
    (folder / "lab-1-s006/.git").mkdir(parents=True)
    found = find_attempts(folder, course)
    assert found.layout == "clones"
    assert found.left_out == (LeftOut("grades.csv", "is neither a folder nor a zip"),)
    people = by_student(found)
    assert {student: one.submitted for student, one in people.items()} == {
        "s001": WHEN,
        "s-002": WHEN,
        "s003": WHEN,
        "s004": WHEN,
        "s005": None,
        "s006": None,
    }
    assert people["s001"].submitted.utcoffset() == timedelta(hours=1)
    assert people["s-002"].person == Person(login="s-002")
    assert collect(people["s001"], course).files == {"layer_norm": NORM}


@pytest.mark.parametrize(
    ("names", "logins"),
    [
        (("lab-1-s001", "lab-1-s002"), ["s001", "s002"]),
        (("s001", "s002"), ["s001", "s002"]),
        (("lab-1-s001",), ["lab-1-s001"]),
        (("lab-s001", "lab-"), ["lab-", "s001"]),
        (("lab-s001", "lib-s001"), ["lab-s001", "lib-s001"]),
    ],
)
def test_the_prefix_of_all_clones_is_not_part_of_a_login(
    names: tuple[str, ...], logins: list[str], tmp_path: Path, course: Course
) -> None:
    for name in names:
        (tmp_path / name / ".git").mkdir(parents=True)
    assert sorted(by_student(find_attempts(tmp_path, course))) == logins


EVIL = """
[core]
    repositoryformatversion = 1
    fsmonitor = "{hook}"
    sshCommand = "{hook}"
    gitProxy = "{hook}"
    pager = "{hook}"
[alias]
    cat-file = "!{hook}"
[remote "origin"]
    url = "ext::{hook}"
    promisor = true
[protocol]
    allow = always
[extensions]
    partialClone = origin
"""


@pytest.mark.parametrize("naive", [["status"], ["cat-file", "-s", "1" * 40]], ids=" ".join)
def test_no_command_in_a_clones_configuration_is_run(
    naive: list[str], tmp_path: Path, course: Course
) -> None:
    marker, hook = tmp_path / "marker", tmp_path / "hook"
    folder = clone(tmp_path / "class/s001")
    hook.write_text(f"#!/bin/sh\ntouch {marker}\n")
    hook.chmod(0o700)
    (folder / ".git/config").write_text(EVIL.format(hook=hook))
    if "cat-file" in naive:  # git would fetch the missing object
        (folder / ".git/HEAD").write_text("1" * 40)
    before = sorted(folder.rglob("*"))
    (attempt,) = find_attempts(tmp_path / "class", course, "clones").attempts
    assert attempt.submitted == (None if "cat-file" in naive else WHEN)
    assert collect(attempt, course).files == {"layer_norm": NORM}
    assert not marker.exists()
    assert sorted(folder.rglob("*")) == before
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run(["git", "-C", folder, *naive], check=False, **quiet)
    assert marker.exists()  # git in the clone itself runs the hook


HEADS = {
    "nothing": b"",
    "no reference": b"ref: refs/heads/none\n",
    "another file": b"ref: refs/../../../stolen\n",
    "no hash": b"g" * 40,
    "an option": b"--textconv",
    "an unknown hash": b"0" * 40,
    "bytes": bytes(range(256)) * 100,
}


@pytest.mark.parametrize("what", HEADS)
def test_an_odd_clone_has_no_time(what: str, tmp_path: Path, course: Course) -> None:
    folder = clone(tmp_path / "class/s001")
    (tmp_path / "class/stolen").write_bytes((folder / ".git/refs/heads/main").read_bytes())
    (folder / ".git/HEAD").write_bytes(HEADS[what])
    (attempt,) = find_attempts(tmp_path / "class", course, "clones").attempts
    assert attempt.submitted is None


def test_a_clone_without_git_or_with_a_pipe_in_it_has_no_time(
    tmp_path: Path, course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    piped = clone(tmp_path / "class/s001")
    (piped / ".git/HEAD").unlink()
    os.mkfifo(piped / ".git/HEAD")
    whole = clone(tmp_path / "class/s002")
    linked = place(tmp_path / "class/s003", "layer_norm.py")
    (linked / ".git").symlink_to(whole / ".git")
    people = by_student(find_attempts(tmp_path / "class", course))
    assert {student: one.submitted for student, one in people.items()} == {
        "s001": None,
        "s002": WHEN,
        "s003": None,
    }
    monkeypatch.setenv("PATH", str(tmp_path))
    assert by_student(find_attempts(tmp_path / "class", course))["s002"].submitted is None


# --- a zip of the whole class ---------------------------------------------------------------------


def in_zip(path: Path, course: Course) -> dict[str, list[str]]:
    with open_submissions(path) as folder:
        return {student: list(one.files) for student, one in read(folder, course).items()}


@pytest.mark.parametrize("wrapping", ["", "class/", "__MACOSX/x", "a b/"])
def test_a_class_is_read_from_a_zip_wrapped_or_not(
    wrapping: str, tmp_path: Path, course: Course
) -> None:
    before = wrapping if wrapping.endswith("/") else ""
    members = {f"{before}s00{n}/masked_softmax.py": SOFTMAX for n in (1, 2)}
    inner = zipped(tmp_path / "inner.zip", {"layer_norm.py": NORM}).read_bytes()
    extra = {wrapping: ""} if wrapping and not before else {}
    path = zipped(tmp_path / "class.zip", {**members, f"{before}s003.zip": inner, **extra})
    assert in_zip(path, course) == {
        "s001": ["masked_softmax"],
        "s002": ["masked_softmax"],
        "s003": ["layer_norm"],
    }


@pytest.mark.parametrize(
    ("members", "students"),
    [
        (["s001/masked_softmax.py"], ["s001"]),
        (["One_11_assignsubmission_file_/hw/masked_softmax.py"], ["11"]),
        (["submission_7/hw/masked_softmax.py"], ["7"]),
        (["export/submission_7/masked_softmax.py"], ["7"]),
        (["submissions/s001_501_1_masked_softmax.py"], ["501"]),
    ],
)
def test_a_class_of_one_is_a_class_too(
    members: list[str], students: list[str], tmp_path: Path, course: Course
) -> None:
    path = zipped(tmp_path / "class.zip", dict.fromkeys(members, SOFTMAX))
    assert in_zip(path, course) == {student: ["masked_softmax"] for student in students}


def test_no_file_of_a_class_zip_is_written_outside_its_folder(
    tmp_path: Path, course: Course
) -> None:
    path = tmp_path / "in/class.zip"
    link = zipfile.ZipInfo("s002/masked_softmax.py")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    members = {"../evil.py": "x", f"{tmp_path}/evil.py": "x", "s001/masked_softmax.py": SOFTMAX}
    zipped(path, {**members, "s003/bomb.py": bytes(archives.MIB)})
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(link, "/etc/passwd")
    left_out: list[LeftOut] = []
    with open_submissions(path, left_out) as folder:
        assert {student: list(one.files) for student, one in read(folder, course).items()} == {
            "s001": ["masked_softmax"]
        }
    assert not folder.exists()
    assert not list(tmp_path.rglob("evil.py"))
    said = [f"{one.what} {one.why}" for one in left_out]
    start = "class.zip holds a file that is not unpacked: "
    assert f"{start}../evil.py points outside the archive" in said
    assert f"{start}s002/masked_softmax.py is a link" in said
    assert any(f"{start}s003/bomb.py cannot be used" in one for one in said)


@pytest.mark.parametrize("wrapping", ["", "class/"])
def test_a_student_with_too_many_files_in_a_class_zip_is_refused_alone(
    wrapping: str, tmp_path: Path, tiny_course: Course
) -> None:
    members = {f"{wrapping}s001/{number}.txt": "" for number in range(opening.MAX_ENTRIES + 1)}
    members |= {f"{wrapping}s00{number}/scale.py": SOFTMAX for number in (2, 3)}
    left_out: list[LeftOut] = []
    with open_submissions(zipped(tmp_path / "class.zip", members), left_out) as folder:
        found = read(folder, tiny_course)
    assert found["s002"].files == found["s003"].files == {"scale": SOFTMAX}
    assert not found["s001"].files
    why = f"holds a file that is not unpacked: {wrapping}s001 holds more than 10000 files"
    assert left_out == [LeftOut("class.zip", why)]


@pytest.mark.parametrize(("members", "size"), [(100, 2**16 - 8), (3, 2000)])
def test_a_zip_that_describes_its_files_at_length_is_refused_before_it_is_parsed(
    members: int, size: int, tmp_path: Path, tiny_course: Course
) -> None:
    with zipfile.ZipFile(tmp_path / "s001.zip", "w") as archive:
        for number in range(members):
            member = zipfile.ZipInfo(f"{number}.py")
            member.extra = b"\x77\x77\0\0" * (size // 4)
            archive.writestr(member, "")
    place(tmp_path, "s002/scale.py")
    found = read(tmp_path, tiny_course)
    assert "s001.zip: the archive's list of files" in reason(found["s001"], tiny_course)
    assert found["s002"].files == {"scale": SOFTMAX}


def test_a_class_zip_may_hold_more_files_than_a_students_zip(
    tmp_path: Path, course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collection.archives, "MAX_MEMBERS", 1)
    members = {f"s{n:04}/masked_softmax.py": SOFTMAX for n in range(archives.STUDENT.members + 1)}
    path = zipped(tmp_path / "class.zip", members)
    with open_submissions(path) as folder:
        assert len(find_attempts(folder, course).attempts) == len(members)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nowhere", "there is no folder"),
        ("notes.txt", "is neither a folder nor a zip"),
        ("broken.zip", "the archive cannot be read: File is not a zip file"),
    ],
)
def test_a_path_that_is_not_a_class_is_a_wrong_request(
    name: str, said: str, tmp_path: Path
) -> None:
    place(tmp_path, "notes.txt", "broken.zip")
    with pytest.raises(RequestError) as raised, open_submissions(tmp_path / name):
        pass
    assert said in raised.value.message
    assert raised.value.remedy


# --- through the command --------------------------------------------------------------------------


def test_what_one_student_hands_in_costs_that_student_alone(
    cli: Cli, tmp_path: Path, tiny_solution: str
) -> None:
    folder = place(tmp_path / "class", "s001/scale.py", "s009/scale.py", text=tiny_solution)
    place(folder, "s009.attempt-1/scale.py", text=tiny_solution)
    place(folder, "scale.py", ".s002/scale.py", "s003/readme.txt", "s005/readme.txt")
    place(folder, "submission_metadata.yml", text="s001: {':submitters': [{':sid': s009}]}\n")
    os.mkfifo(folder / "s003/b.zip")
    (folder / "s004").mkdir()
    (folder / "s004/scale.py").symlink_to(folder / "s001/scale.py")
    secret = zipped(tmp_path / "s001.zip", {"scale.py": tiny_solution})
    os.link(secret, folder / "s005/b.zip")
    said = cli("batch", folder, "--out", tmp_path / "out", "--course", TINY)
    assert said.code == 1
    with (tmp_path / "out/grades.csv").open() as file:
        points = {row["submission"]: row["points"] for row in csv.DictReader(file)}
    (renamed,) = {*points} - {f"s00{number}" for number in (1, 3, 4, 5, 9)}
    assert renamed.startswith("s009.attempt-1-")
    none = dict.fromkeys(("s003", "s004", "s005"), "0")
    assert points == {"s001": "8", "s009": "8", renamed: "8", **none}
    assert ".s002 begins with a dot and was left out" in said.err
    assert (
        "scale.py is an exercise that lies beside the students' work and was left out" in said.err
    )
    advice = {student: (tmp_path / f"out/reports/{student}.json").read_text() for student in none}
    assert "b.zip is not a regular file and was left out" in advice["s003"]
    assert "scale.py is a link and was left out" in advice["s004"]
    assert "b.zip is a hard link (hand in a copy) and was left out" in advice["s005"]
