"""Reading a course: what is accepted, and errors that name the file and the key."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from commandline import Cli

from grader.course.course import load_course
from grader.course.known_mistakes import Mistake, load_mistakes
from grader.errors import CourseError

SETTINGS = 'title = "Scale"\norder = 1\npoints = 8\nimplements = ["scale"]\n'
MISTAKE = '[capped]\nedits = [["factor", "2"]]\nsays = "s"\nhint = "h"\n'
SAID = 'says = "s"\nhint = "h"\n'


def message_of(path: Path, text: str) -> str:
    """Return what reading the course says of a file with this text, after the file's name."""
    path.write_text(text)
    with pytest.raises(CourseError) as caught:
        load_mistakes(load_course(path.parent.parent.parent)["scale"])
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
        (SETTINGS + "minutes = 0", "minutes: expected a whole number >= 1"),
        (SETTINGS + "minutes = 12.5", "minutes: expected a whole number, got"),
        (SETTINGS + "minutes = 601", "minutes: expected a whole number <= 600"),
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
        (MISTAKE.replace("hint =", "hints ="), "capped: unknown key `hints`; did you mean"),
        (MISTAKE + 'name = "capped"', "capped: unknown key `name`"),
        (MISTAKE.replace('"s"', "5"), "capped.says: expected text, got a whole number"),
        (MISTAKE + "like = []", "capped.like: expected text, got a list"),
        ("[[capped]]", "capped: expected a table, got a list"),
        ("[capped", "not valid TOML: "),
        ('costs = "2"', "costs: expected a whole number, got text"),
        ("edits = [5]", "edits: expected a table, got a list"),
    ],
)
def test_a_wrong_key_of_a_mistake_is_named(tiny_copy: Path, text: str, said: str) -> None:
    assert message_of(tiny_copy / "reference" / "scale" / "mistakes.toml", text).startswith(said)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('edits = "x"', "capped.edits: expected a list, got text"),
        ('edits = ["x", "y"]', "capped.edits[0]: expected a list, got text"),
        ('edits = [["x"]]', "capped.edits[0]: expected a list of at least 2"),
        ('also = [["x", "y"]]', "capped.also[0][0]: expected a list, got text"),
        ('forms = [[["x", 5]]]', "capped.forms[0][0][1]: expected text, got a whole number"),
        ('forms = [[{ replace = "x" }]]', "capped.forms[0][0]: expected a list, got a table"),
    ],
)
def test_what_is_no_edit_is_named_with_an_example(tiny_copy: Path, text: str, said: str) -> None:
    message = message_of(
        tiny_copy / "reference" / "scale" / "mistakes.toml", f"[capped]\n{SAID}{text}\n"
    )
    example = '["dim=-1", "dim=0"]: a text, and its replacement'
    assert message == f"{said}; an edit is a list, such as {example}"


def test_the_forms_of_a_mistake_are_in_order(tiny_copy: Path) -> None:
    path = tiny_copy / "reference" / "scale" / "mistakes.toml"
    path.write_text(f"""[capped]
edits = [["a", "1", "2"], ["b", "{{number}}"]]
also = [[["c", "3"]]]
forms = [[["d", "4"], ["e", "5"]], [["f", ""]]]
number = "6"
{SAID}""")
    (mistake,) = load_mistakes(load_course(tiny_copy)["scale"])
    assert [" ".join(map("".join, form)) for form in mistake.programs()] == [
        *("a1 b6", "a2 b6", "a1", "a2", "b6"),
        "a1 b6 c3",
        *("d4 e5", "f"),
    ]
    assert next(mistake.programs("7"))[1].by == "7"


SHARED = """[capped]
edits = [["factor", "{number}"]]
number = "2"
says = "It is capped."
hint = "Try {number}."
"""


def test_what_a_table_leaves_out_is_taken_from_the_course(tiny_copy: Path) -> None:
    (tiny_copy / "reference" / "mistakes.toml").write_text(SHARED)
    path = tiny_copy / "reference" / "scale" / "mistakes.toml"

    def read(text: str) -> Mistake:
        path.write_text(text)
        (mistake,) = load_mistakes(load_course(tiny_copy)["scale"])
        return mistake

    taken = read("[capped]\n")
    assert (taken.says, taken.hint, taken.costs) == ("It is capped.", "Try {number}.", None)
    assert [*taken.programs()] == [(("factor", "2"),)]
    own = read('costs = 3\n[capped]\nhint = "h"\nforms = [[["x", "y"]]]\n')
    assert (own.says, own.hint, own.costs, own.number) == ("It is capped.", "h", 3, "")
    assert [*own.programs()] == [(("x", "y"),)]
    assert read("costs = 3\n[capped]\ncosts = 1\n").costs == 1


def test_a_mistake_without_a_sentence_is_named(tiny_copy: Path) -> None:
    common = tiny_copy / "reference" / "mistakes.toml"
    path = tiny_copy / "reference" / "scale" / "mistakes.toml"
    wanted = f"write it here, or in a table `caped` of {common}"
    text = MISTAKE.replace("capped", "caped")
    message = message_of(path, text.replace('hint = "h"', ""))
    assert message == f"caped: missing key `hint`; {wanted}"
    common.write_text(SHARED)
    message = message_of(path, text.replace('says = "s"', ""))
    assert message == f"caped: missing key `says`; {wanted}; did you mean `capped`?"


def test_the_file_of_the_course_is_named_if_it_is_wrong(tiny_copy: Path) -> None:
    common = tiny_copy / "reference" / "mistakes.toml"
    common.write_text("[capped]\nsay = 'x'\n")
    with pytest.raises(CourseError) as caught:
        load_mistakes(load_course(tiny_copy)["scale"])
    assert caught.value.message == f"{common}: capped: unknown key `say`; did you mean `says`?"


def test_a_change_of_what_is_shared_changes_the_hashes(tiny_copy: Path) -> None:
    before = load_course(tiny_copy).hashes
    (tiny_copy / "reference" / "mistakes.toml").write_text(SHARED)
    assert load_course(tiny_copy).hashes != before


def test_what_is_shared_recurs() -> None:
    root = Path(__file__).parent.parent
    shared = tomllib.loads((root / "reference" / "mistakes.toml").read_text("utf-8"))
    files = (root / "reference").glob("*/mistakes.toml")
    tables = [tomllib.loads(path.read_text("utf-8")) for path in files]
    for name in shared:
        own = [table[name] for table in tables if name in table]
        assert sum(not {"says", "hint"} <= table.keys() for table in own) > 1, name


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
