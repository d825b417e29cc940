"""`grader new` writes an exercise whose list of what is left to do shrinks to nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from commandline import Cli

pytestmark = pytest.mark.in_turn


@pytest.mark.slow
def test_a_new_course_is_red_with_a_list_that_shrinks_to_green(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "grader validate centre" in cli("new", "centre").out
    said = cli("validate", "centre")
    assert said.code == 1
    assert "✗ reference/centre/statement.md:3: TODO: the idea, and a formula" in said.out
    *now, stale, title, later = [
        line for line in said.out.splitlines() if line.startswith("✗")
    ]  # what to do first, and the rest in a line each
    assert {line.partition(":")[0] for line in now} == {"✗ reference/centre/statement.md"}
    assert stale.endswith("and 5 more: not what `grader build` would write")
    assert title == '✗ reference/course.toml:1: title = "TODO: a title"'
    assert later.startswith(
        "✗ then the places with TODO in reference/centre/solution.py (lines 1, "
    )
    assert "reference/centre/exercise.toml (lines 1, " in later
    for path in (tmp_path / "reference").rglob("*.*"):
        if path.suffix == ".pyc":
            continue
        path.write_text(path.read_text().replace("TODO: ", "This is "))
    assert cli("build").code == 0
    said = cli("validate")
    assert said.code == 0, said.out


@pytest.mark.slow
def test_what_a_new_exercise_holds_names_its_mistakes_to_students(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli("new", "centre", "--course", tmp_path / "course")
    cli("build", "--course", tmp_path / "course")
    cli("init", tmp_path / "mine", "--course", tmp_path / "course")
    solution = tmp_path / "course" / "reference" / "centre" / "solution.py"
    file = tmp_path / "mine" / "exercises" / "centre.py"
    file.write_text(solution.read_text().replace("x.mean(dim=-1", "x.sum(dim=-1"))
    monkeypatch.chdir(tmp_path / "mine")
    assert "→ The sum is subtracted, not the mean." in cli("check").out
    file.write_text(solution.read_text())
    assert cli("check").code == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "old", "new", "says"),
    [
        ("test_hidden.py", "drawn(3, 5)", "lambda rng: rng.no_such(3)", "raises AttributeError on"),
        ("test_hidden.py", '"single"', '"ties"', "there is no aspect 'ties'"),
        ("exercise.toml", '"centred"', '"centered"', "nothing in solution.py is called centered"),
        ("../course.toml", "TODO: a title", "TODO", "reference/course.toml:1: title"),
    ],
)
def test_validate_finds_what_would_fail_in_silence(
    file: str, old: str, new: str, says: str, cli: Cli, tmp_path: Path
) -> None:
    cli("new", "centre", "--course", tmp_path)
    path = tmp_path / "reference" / "centre" / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    said = cli("validate", "--course", tmp_path)
    assert said.code in (1, 2)  # a file that cannot be read ends the proof
    assert says in said.out + said.err


@pytest.mark.slow
@pytest.mark.parametrize("gap", ["TODO: ", r"TODO: [^\n\"]*(?=\"|\n|\Z)", r"[^\n]*TODO: [^\n]*\n"])
def test_a_todo_that_left_a_gap_is_found(gap: str, cli: Cli, tmp_path: Path) -> None:
    cli("new", "centre", "--course", tmp_path)
    statement = tmp_path / "reference" / "centre" / "statement.md"
    statement.write_text(re.sub(gap, "", statement.read_text()))
    said = cli("validate", "centre", "--course", tmp_path)
    first = "✗ reference/centre/statement.md:"
    found = [line for line in said.out.splitlines() if line.startswith(first)]
    assert len(found) >= 2, said.out
    if gap.startswith("[^"):
        return  # the other files do not run without these lines
    settings = statement.with_name("exercise.toml")
    public = statement.with_name("test_public.py")
    for path in (settings, public):
        path.write_text(re.sub(gap, "", path.read_text()))
    said = cli("validate", "centre", "--course", tmp_path)
    says = "nothing is written here yet in place of the TODO"
    assert f"{settings.parent.name}/exercise.toml:2: {says}: summary = " in said.out
    assert f"centre/test_public.py:11: {says}" in said.out


def test_a_further_exercise_comes_last(cli: Cli, tiny_copy: Path) -> None:
    assert cli("new", "centre", "--course", tiny_copy).code == 0
    settings = (tiny_copy / "reference" / "centre" / "exercise.toml").read_text()
    assert "order = 2" in settings
    assert "says 8 points, the exercises add up to 12" in cli(
        "validate", "--course", tiny_copy
    ).out.replace("course.toml: ", "")


def test_a_course_may_begin_inside_another(cli: Cli, tiny_copy: Path) -> None:
    inner = tiny_copy / "examples" / "inner"
    assert f"grader validate centre --course {inner}" in cli("new", "centre", "--course", inner).out
    assert (inner / "reference" / "course.toml").is_file()
    assert not (tiny_copy / "reference" / "centre").exists()


@pytest.mark.parametrize("place", [".", "../tiny", "reference/.."])
def test_a_course_that_is_named_by_a_relative_path_is_not_begun_again(
    place: str, cli: Cli, tiny_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tiny_copy)
    settings = (tiny_copy / "reference" / "course.toml").read_text()
    said = cli("new", "centre", "--course", place)
    assert (said.code, "trust" in said.out) == (0, False)
    assert (tiny_copy / "reference" / "course.toml").read_text() == settings
    assert "order = 2" in (tiny_copy / "reference" / "centre" / "exercise.toml").read_text()


@pytest.mark.parametrize("inside", ["", "scale"])
def test_the_reference_of_a_course_is_not_the_folder_to_name(
    inside: str, cli: Cli, tiny_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {*tiny_copy.rglob("*")}
    for folder, place in (("", "reference"), ("reference", ".")):
        monkeypatch.chdir(tiny_copy / folder)
        said = cli("new", "centre", "--course", Path(place, inside))
        assert (said.code, "is inside reference/ of a course" in said.err) == (2, True)
        assert f"--course {tiny_copy}" in said.err
    assert {*tiny_copy.rglob("*")} == before


def test_a_course_toml_is_never_overwritten(cli: Cli, tiny_copy: Path) -> None:
    settings = tiny_copy / "reference" / "course.toml"
    settings.rename(tiny_copy / "mine.toml")
    settings.mkdir()
    said = cli("new", "centre", "--course", tiny_copy)
    assert (said.code, "course.toml is there already" in said.err) == (2, True)
    assert not (tiny_copy / "reference" / "centre").exists()


LISTS = """
title = "Scaling"

[lists.small]
points = 8
exercises = ["scale"]

[lists.whole]
points = 8
"""


def test_a_new_exercise_says_which_lists_it_is_to_be_added_to(cli: Cli, tiny_copy: Path) -> None:
    settings = tiny_copy / "reference" / "course.toml"
    settings.write_text(LISTS.partition("[lists.whole]")[0])
    told = "add centre and its points to a list in reference/course.toml: small"
    assert told in " ".join(cli("new", "centre", "--course", tiny_copy).out.split())
    settings.write_text(LISTS)
    told = "add the points of middle to those of the list whole in reference/course.toml"
    assert told in " ".join(cli("new", "middle", "--course", tiny_copy).out.split())


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("scale", "is there already"),
        ("two words", "cannot name a module"),
        ("class", "cannot name a module"),
        ("math", "is the name of another module"),
        ("torch", "is the name of another module"),
        ("../x", "cannot name a module"),
        ("", "cannot name a module"),
        ("a" * 300, "is longer than 60 letters"),
        ("\ufb01ne", "cannot name a module"),  # Python reads the ligature as two letters
        ("größe", "cannot name a module"),
        ("Scale", "cannot name a module"),
        ("__init__", "cannot name a module"),
        ("_private", "cannot name a module"),
        ("a\u202eb", "cannot name a module"),
        ("a\nb", "cannot name a module"),
        ("con", "is the name of a device on Windows"),
        ("lpt1", "is the name of a device on Windows"),
        ("conftest", "is the name of another module"),
        ("click", "is the name of another module"),  # installed here
    ],
)
def test_a_name_that_does_not_serve_is_refused(
    name: str, says: str, cli: Cli, tiny_copy: Path
) -> None:
    said = cli("new", name, "--course", tiny_copy)
    assert (said.code, says in said.err) == (2, True)
    assert "\u202e" not in said.err
    if says != "is there already":
        assert "grader new my_exercise" in said.err


@pytest.mark.parametrize("name", ["con", "__init__", "größe", "a" * 61])
def test_a_folder_that_cannot_be_an_exercise_is_refused(
    name: str, cli: Cli, tiny_copy: Path
) -> None:
    reference = tiny_copy / "reference"
    (reference / "scale").rename(reference / name)
    said = cli("validate", "--course", tiny_copy)
    assert said.code == 2
    assert f"{reference / name}: an exercise cannot have this name" in said.err
    assert "rename the folder" in said.err
