"""Reading a course: what is accepted, and errors that name the file and the key."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commandline import Cli

from grader.course.course import load_course
from grader.course.faults import load_faults
from grader.errors import CourseError

SETTINGS = 'title = "Scale"\norder = 1\npoints = 8\nimplements = ["scale"]\n'
FAULT = '[[fault]]\nname = "capped"\nreplace = "factor"\nby = "2"\nsays = "s"\nhint = "h"\n'


def message_of(path: Path, text: str) -> str:
    """Return what reading the course says of a file with this text, after the file's name."""
    path.write_text(text)
    with pytest.raises(CourseError) as caught:
        load_faults(load_course(path.parent.parent.parent)["scale"])
    assert caught.value.message.startswith(f"{path}: ")
    return caught.value.message.removeprefix(f"{path}: ")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            SETTINGS.replace("points = 8", 'points = "8"'),
            "points: expected a whole number, got text",
        ),
        (SETTINGS.replace("points = 8", "points = -8"), "points: expected a whole number >= 0"),
        (SETTINGS.replace("order = 1", "order = true"), "order: expected a whole number, got"),
        (SETTINGS.replace('["scale"]', '"scale"'), "implements: expected a list, got text"),
        (SETTINGS + "hints = [5]", "hints[0]: expected text, got a whole number"),
        (SETTINGS + "call_seconds = 0", "call_seconds: expected a number > 0"),
        (SETTINGS + "exercise_seconds = inf", "exercise_seconds: expected a number <= 1e+308"),
        (SETTINGS + 'name = "shift"', "unknown key `name`"),
        (SETTINGS + 'folder = "shift"', "unknown key `folder`"),
        (SETTINGS + 'hint = "Think."', "unknown key `hint`; did you mean `hints`?"),
        (SETTINGS + 'requires = ["scael"]', "requires: there is no exercise `scael`; did you mean"),
        (SETTINGS + "idea = ", "not valid TOML: Invalid value (at "),
    ],
)
def test_a_wrong_key_of_an_exercise_is_named(tiny_copy: Path, text: str, said: str) -> None:
    assert message_of(tiny_copy / "reference" / "scale" / "exercise.toml", text).startswith(said)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (FAULT.replace('hint = "h"', ""), "fault.capped: missing key `hint`"),
        (FAULT.replace("hint =", "hints ="), "fault.capped: unknown key `hints`; did you mean"),
        (FAULT + FAULT.replace('name = "capped"', ""), "fault[1]: missing key `name`"),
        (FAULT.replace('"s"', "5"), "fault.capped.says: expected text, got a whole number"),
        (FAULT + 'edits = "x"', "fault.capped.edits: expected a list, got text"),
        (FAULT + "like = []", "fault.capped.like: expected text, got a list"),
        (FAULT.replace("[[fault]]", "[[faults]]"), "unknown key `faults`; did you mean `fault`?"),
        (FAULT.replace("[[fault]]", "[fault]"), "fault: expected a list, got a table"),
        ("fault = [5]", "fault[0]: expected a table, got a whole number"),
    ],
)
def test_a_wrong_key_of_a_fault_is_named(tiny_copy: Path, text: str, said: str) -> None:
    assert message_of(tiny_copy / "reference" / "scale" / "faults.toml", text).startswith(said)


@pytest.mark.parametrize(
    ("lists", "said"),
    [
        ('points = "a"', "lists.half.points: expected a whole number, got text"),
        ('points = 8\nexercise = ["scale"]', "lists.half: unknown key `exercise`; did you mean"),
        ('exercises = ["scale"]', "lists.half: missing key `points`"),
    ],
)
def test_a_wrong_key_of_a_list_is_named(tiny_copy: Path, lists: str, said: str) -> None:
    path = tiny_copy / "reference" / "course.toml"
    right = '[lists.whole]\npoints = 8\ntitle = "All"\n'
    text = f'title = "T"\n{right}[lists.half]\ntitle = "Half"\n{lists}\n'
    path.write_text(text)
    with pytest.raises(CourseError) as caught:
        load_course(tiny_copy)
    assert caught.value.message.startswith(f"{path}: {said}")


def test_exercises_that_require_each_other_are_named(tiny_copy: Path) -> None:
    folder = tiny_copy / "reference"
    (folder / "scale" / "exercise.toml").write_text(f'{SETTINGS}requires = ["shift"]\n')
    (folder / "shift").mkdir()
    (folder / "shift" / "exercise.toml").write_text(f'{SETTINGS}requires = ["scale"]\n')
    with pytest.raises(CourseError) as caught:
        load_course(tiny_copy)
    says = f"{folder / 'scale' / 'exercise.toml'}: requires: through others, it requires itself"
    assert caught.value.message == says


@pytest.mark.parametrize("file", ["statement.md", "solution.py", "example.py", "test_public.py"])
def test_a_text_that_is_not_utf_8_is_named(cli: Cli, tiny_copy: Path, file: str) -> None:
    path = tiny_copy / "reference" / "scale" / file
    path.write_bytes(b"# f\xfcr\n")
    said = cli("build", "--course", tiny_copy)
    assert said.code == 2
    assert f"{path}: not UTF-8 (byte 3)" in " ".join(said.err.split())


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"points": 8', '"points": "8"', "points: expected a whole number, got text"),
        ('"name": "scale",', "", "exercises[0]: missing key `name`"),
        ('"order": 1,', "", "exercises.scale: missing key `order`"),
        ('"order": 1', '"order": []', "exercises.scale.order: expected a whole number, got a list"),
        ('"exercises"', '"exercise"', "unknown key `exercise`; did you mean `exercises`?"),
        ("{", "", "not valid JSON: "),
        (None, "[]", "expected a table, got a list"),
        (None, '{"title": "caf\xe9"}', "not UTF-8 (byte 14)"),
    ],
)
def test_a_damaged_students_copy_is_named(
    cli: Cli, tiny_copy: Path, old: str | None, new: str, said: str
) -> None:
    path = as_students_copy(cli, tiny_copy)
    text = new if old is None else path.read_text().replace(old, new, 1)
    path.write_text(text, "latin-1")
    result = cli("status", "--course", tiny_copy)
    assert result.code == 2
    assert f"{path}: {said}" in " ".join(result.err.split())
    assert "download the course again" in result.err


def test_a_students_copy_has_the_exercises_but_not_their_folders(cli: Cli, tiny_copy: Path) -> None:
    taught = load_course(tiny_copy)["scale"]
    data = json.loads(as_students_copy(cli, tiny_copy).read_text())
    course = load_course(tiny_copy)
    assert (course.suites, course.title, course.points) == ("public", data["title"], 8)
    assert course["scale"].stub
    assert course["scale"].stand_in is None
    assert "folder" not in data["exercises"][0]
    for key in ("title", "implements", "hints", "call_seconds", "exercise_seconds"):
        assert getattr(course["scale"], key) == getattr(taught, key)


def as_students_copy(cli: Cli, course: Path) -> Path:
    """Make a students' copy of a course; returns its `course.json`."""
    assert cli("build", "--course", course).code == 0
    (course / "reference").rename(course.parent / "kept")
    return course / "exercises" / "course.json"


def test_changes_of_statements_change_only_their_hash(tiny_copy: Path) -> None:
    before = load_course(tiny_copy)
    hashes, statement_hash = dict(before.hashes), before.statement_hash
    statement = tiny_copy / "reference" / "scale" / "statement.md"
    statement.write_text(statement.read_text() + "\nMore.\n")
    after = load_course(tiny_copy)
    assert (after.hash, after.hashes) == (before.hash, hashes)
    assert after.statement_hash != statement_hash
