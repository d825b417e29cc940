"""Only a student's own regular files are opened; anything else costs that student alone."""

from __future__ import annotations

import contextlib
import csv
import ctypes
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from commandline import Cli
from handed_in import (
    NORM,
    REFUSED,
    SOFTMAX,
    place,
    plant,
    read,
    reason,
    zipped,
)

from grader import trees
from grader.course.course import Course
from grader.submissions import opening
from grader.submissions.layouts import (
    LeftOut,
    collection,
    find_attempts,
)
from grader.submissions.submission import accepted

TINY = Path(__file__).parent / "tiny"


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
    assert f"`b.zip` {REFUSED[kind]} and was left out; needs review" in found["s001"].notes
    assert found["s002"].notes == ()
    assert not found["s003"].files
    if kind != "folder":
        assert f"`b.zip` {REFUSED[kind]} and was left out" in reason(found["s003"], tiny_course)


@pytest.mark.parametrize("kind", REFUSED)
def test_what_only_looks_like_an_exercise_is_left_out(
    kind: str, tmp_path: Path, tiny_course: Course
) -> None:
    secret = place(tmp_path, "secret.py", text="secret = 1\n") / "secret.py"
    plant(kind, tmp_path / "class/s001/scale.py", secret)
    plant(kind, tmp_path / "class/s002/deep/scale/solution.py", secret)
    found = read(tmp_path / "class", tiny_course)
    assert f"`scale.py` {REFUSED[kind]} and was left out" in reason(found["s001"], tiny_course)
    assert f"/solution.py` {REFUSED[kind]} and was left out" in reason(found["s002"], tiny_course)


def test_a_hard_link_in_the_class_folder_is_nobodys_work(
    tmp_path: Path, tiny_course: Course
) -> None:
    mine = zipped(tmp_path / "s001.zip", {"scale.py": SOFTMAX})
    (tmp_path / "s002").mkdir()
    os.link(mine, tmp_path / "s002/mine.zip")
    os.link(place(tmp_path, "s003.py") / "s003.py", tmp_path / "s004.py")
    found = read(tmp_path, tiny_course)
    for student in ("s001", "s002", "s003", "s004"):  # nobody can tell whose it was first
        assert "is a hard link (make a copy)" in reason(found[student], tiny_course)


def test_no_name_on_the_way_to_a_file_may_be_a_link(tmp_path: Path) -> None:
    place(tmp_path, "secret/deep/scale.py", "class/s001/scale.py")
    (tmp_path / "class/s001/here").symlink_to(tmp_path / "secret")
    for path in ("here/deep/scale.py", "here", "../../secret/deep/scale.py", "here/../scale.py"):
        with pytest.raises(trees.NotOpened):
            trees.open_file(tmp_path / "class/s001" / path, tmp_path / "class")
    with pytest.raises(trees.NotOpened, match="is a link"):
        opening.OwnFolder(tmp_path / "class").entries(tmp_path / "class/s001/here/deep")
    (tmp_path / "teacher").symlink_to(tmp_path / "class")  # but a teacher may name a link
    with trees.open_file(tmp_path / "teacher/s001/scale.py", tmp_path / "teacher") as file:
        assert file.read() == SOFTMAX.encode()


def test_a_file_that_grows_is_read_up_to_its_limit(tmp_path: Path) -> None:
    file = place(tmp_path, "scale.py", text="x" * 11) / "scale.py"
    assert trees.read_file(file, tmp_path, 11) == b"x" * 11
    with pytest.raises(trees.NotOpened, match="is larger than 0 KiB"):
        trees.read_file(file, tmp_path, 10)


@pytest.mark.slow
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
            one.student: accepted(collection.read_attempt(one, tiny_course), tiny_course)
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


def test_a_link_beside_a_zip_is_not_followed(tmp_path: Path, course: Course) -> None:
    secret = place(tmp_path / "elsewhere", "masked_softmax.py", text="secret = 1\n")
    zipped(tmp_path / "class/s001/hw.zip", {"layer_norm.py": NORM})
    (tmp_path / "class/s001/masked_softmax.py").symlink_to(secret / "masked_softmax.py")
    (tmp_path / "class/s001/feed_forward").symlink_to(secret)
    os.link(secret / "masked_softmax.py", tmp_path / "class/s001/feed_forward.py")
    found = read(tmp_path / "class", course)["s001"]
    assert found.files == {"layer_norm": NORM}
    assert {
        "`masked_softmax.py` is a link and was left out; needs review",
        "`feed_forward` is a link and was left out; needs review",
        "`feed_forward.py` is a hard link (make a copy) and was left out; needs review",
    } <= set(found.notes)


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
    with (tmp_path / "out/grades.csv").open(encoding="utf-8-sig") as file:
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
    assert "`b.zip` is not a regular file and was left out" in advice["s003"]
    assert "`scale.py` is a link and was left out" in advice["s004"]
    assert "`b.zip` is a hard link (make a copy) and was left out" in advice["s005"]
