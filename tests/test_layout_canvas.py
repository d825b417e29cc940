"""A Canvas download is read by its file names."""

from __future__ import annotations

from pathlib import Path

from handed_in import (
    NORM,
    STRANGE,
    by_student,
    place,
    read,
    reason,
    zipped,
)

from grader.course.course import Course
from grader.report import Person
from grader.submissions.layouts import (
    LeftOut,
    collect,
    find_attempts,
)


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
        reason(submissions["505"], course) == "`report.pdf` is neither Python, a notebook nor a zip"
    )
    assert "`hw.rar` is an archive that is not opened here" in reason(submissions["506"], course)


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
    assert "`..` is neither" in reason(submissions["503"], course)


def test_dates_in_plain_names_are_not_canvas_numbers(tmp_path: Path, course: Course) -> None:
    place(tmp_path, "s001-hand.in_2026_11_final.py", "s002-hand.in_2026_12_final.py")
    assert find_attempts(tmp_path, course).layout == "plain"
