"""A Moodle download is read by its folder names."""

from __future__ import annotations

from pathlib import Path

from handed_in import (
    NORM,
    by_student,
    place,
    read,
    reason,
    zipped,
)

from grader.course.course import Course
from grader.report import Person
from grader.submissions.layouts import (
    find_attempts,
)


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
    assert "`my_own.txt` is neither Python" in reason(found["12"], course)


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
    assert read(tmp_path, course)["11"].files == {"layer_norm": NORM}
