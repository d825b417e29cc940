"""A Gradescope export is read by its metadata, and without it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from handed_in import (
    REFUSED,
    by_student,
    place,
    plant,
)

from grader.course.course import Course
from grader.report import Person
from grader.submissions.layouts import (
    FoundAttempts,
    collect,
    find_attempts,
)

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
