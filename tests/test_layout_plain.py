"""A plain folder is read as a class: a folder, zip, file or notebook for each student."""

from __future__ import annotations

from pathlib import Path

import pytest
from handed_in import (
    NORM,
    SOFTMAX,
    STRANGE,
    by_student,
    notebook,
    place,
    read,
    reason,
    zipped,
)

from grader.classroom import publishing, storage
from grader.course.course import Course
from grader.errors import RequestError
from grader.submissions.layouts import (
    LeftOut,
    find_attempts,
)
from grader.submissions.layouts.attempt import RESERVED


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
        "`s003.py` was used for masked_softmax because of what it defines",
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
    assert "no exercise file in s001.py; `s001.py` is not an exercise file" in reason(
        found["s001"], course
    )
    assert "`s002.ipynb` is not an exercise file" in reason(found["s002"], course)


@pytest.mark.parametrize(
    "file", ["masked_softmax.py", "layer_norm/solution.py", "layer_norm.ipynb"]
)
def test_a_folder_of_exercises_is_not_a_class(file: str, tmp_path: Path, course: Course) -> None:
    place(tmp_path, file, "readme.md")
    place(tmp_path, "helpers.py", "plots.py", "more.ipynb", text="def plot(): pass\n")
    with pytest.raises(RequestError, match="looks like one submission") as raised:
        find_attempts(tmp_path, course)
    assert file in raised.value.message
    assert raised.value.remedy == f"grader check {tmp_path}"


def test_one_file_named_like_an_exercise_does_not_refuse_a_class(
    tmp_path: Path, course: Course
) -> None:
    place(tmp_path, "s001.py", "s002.ipynb", "layer_norm.py")
    found = find_attempts(tmp_path, course)
    assert list(by_student(found)) == ["s001", "s002"]
    what = "is an exercise that lies beside the students' work"
    assert found.left_out == (LeftOut("layer_norm.py", what),)


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
