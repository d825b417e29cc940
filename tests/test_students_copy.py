"""A students' copy tells as much as the teacher's, and holds no answer.

The copy is `exercises/` alone. What wrong and right programs hear in it is compared with what they
hear from the hidden suites.
"""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from commandline import Cli, Grade
from corpus.verdicts import students_copy

from grader.course import records
from grader.course.course import PUBLIC_COURSE, Course, Exercise, load_course
from grader.course.known_mistakes import load_mistakes
from grader.course.suite_text import shipped_cases
from grader.grading.diagnosis import record
from grader.grading.diagnosis.search import Diagnostician
from grader.grading.seeds import PUBLIC_SEED

MAX_BYTES = 100 * 1024  # of the record of an exercise
MAX_FILE = 250 * 1024  # of anything else
MAX_DATA = 10 * 1024  # of each exercise in the one file about all
NAMES = load_course(Path(__file__).parent.parent).names


@pytest.fixture(scope="module")
def copy(course: Course, tmp_path_factory: pytest.TempPathFactory) -> Course:
    """What students have: the exercises, and nothing of the teaching team's."""
    return students_copy(course, tmp_path_factory.mktemp("students"))


# --- it holds no answer ---------------------------------------------------------------------------


def everything(copy: Course) -> Iterator[tuple[str, str, str]]:
    """Yield every text of a copy with its place and exercise, but without the hints.

    What is packed is unpacked, and what concerns all exercises comes in parts.
    """
    for path in sorted(copy.student_folder.rglob("*")):
        if path.suffix == ".bin":
            with zipfile.ZipFile(path) as archive:
                for name in archive.namelist():
                    yield name, path.stem, archive.read(name).decode("latin-1")
        elif path.name == "course.json":
            content = json.loads(path.read_text("utf-8"))
            for exercise in content.pop("exercises"):
                del exercise["hints"]  # the last one is nearly the answer, as is meant
                yield path.name, exercise["name"], json.dumps(exercise, ensure_ascii=False)
            yield path.name, "", json.dumps(content, ensure_ascii=False)
        elif path.suffix == ".ipynb":
            for cell in json.loads(path.read_text("utf-8"))["cells"]:
                yield path.name, cell["id"].rpartition("-")[0], "".join(cell["source"])
        elif path.is_file() and path.suffix != ".pyc":
            yield path.name, path.stem.removeprefix("test_"), path.read_text("utf-8")


def code_lines(text: str, least: int) -> set[str]:
    """Return the lines of a text that say something, without comments and indents."""
    lines = (line.partition("  # ")[0].strip() for line in text.splitlines())
    return {line for line in lines if len(line) >= least}


def solved(text: str) -> str:
    """Return what stands between the marks of a solution."""
    parts = text.split("# --- solution")[1:]
    return "\n".join(part.partition("# --- end")[0] for part in parts)


def given(exercise: Exercise) -> str:
    """Return what the author gives to students: the task, the example, the rest of the solution."""
    text = exercise.read("solution.py")
    for part in text.split("# --- solution")[1:]:
        text = text.replace(part.partition("# --- end")[0], "")
    return "\n".join([text, exercise.read("statement.md"), exercise.example])


def test_no_line_of_a_solution_or_of_an_edit_is_in_it(course: Course, copy: Course) -> None:
    secret: dict[str, dict[str, str]] = {}
    for exercise in course.exercises:
        own = dict.fromkeys(code_lines(solved(exercise.read("solution.py")), 22), "solution")
        for fault in load_mistakes(exercise):
            for form in fault.programs():
                for edit in form:
                    own |= dict.fromkeys(code_lines(edit.by, 24), fault.name)
        shown = given(exercise)
        secret[exercise.name] = {line: of for line, of in own.items() if line not in shown}
    assert min(map(len, secret.values())) > 15
    found = [
        (place, of, line)
        for place, name, text in everything(copy)
        for line, of in secret.get(name, {}).items()
        if line in text
    ]
    assert found == []


def test_no_line_of_a_hidden_test_is_in_what_is_made_for_students(
    course: Course, copy: Course
) -> None:
    """Public tests and cases are the author's own, who may use a line in both suites."""
    hidden = {
        exercise.name: code_lines(exercise.read("test_hidden.py"), 45)
        for exercise in course.exercises
    }
    assert min(map(len, hidden.values())) > 15
    found = [
        (place, line)
        for place, name, text in everything(copy)
        for line in hidden.get(name, set())
        if line in text and not place.startswith("test_") and not place.endswith(record.CASES)
        if line not in given(course[name])
    ]
    assert found == []


@pytest.mark.slow
@pytest.mark.in_turn
@pytest.mark.parametrize("name", NAMES)
def test_the_tensors_in_it_are_answers_to_its_own_cases(
    course: Course, copy: Course, name: str
) -> None:
    from grader.grading.diagnosis.computed import ComputedCatalogue
    from grader.grading.diagnosis.encoding import answer_of

    recorded = record.load_record(copy, name)
    assert recorded is not None
    assert recorded.cases == shipped_cases(course[name])
    assert recorded.record.seed == PUBLIC_SEED
    catalogue = ComputedCatalogue(course, course[name], PUBLIC_SEED, shipped=True)
    for case, plain in zip(catalogue.cases, recorded.record.reference, strict=True):
        assert catalogue.is_right(answer_of(plain), case)
    asked = {case.sentence for case in catalogue.cases}
    steps = [step for single in recorded.record.singles for step in single.steps.values()]
    assert {step.probe for step in steps} <= asked


def test_it_is_small(course: Course, copy: Course) -> None:
    for name in copy.names:
        assert record.path_of(copy, name).stat().st_size <= MAX_BYTES, name
    sizes = {p.name: p.stat().st_size for p in copy.student_folder.rglob("*") if p.is_file()}
    assert sizes.pop(PUBLIC_COURSE) <= MAX_DATA * len(copy.names)
    assert max(sizes.values()) <= MAX_FILE


# --- it tells as much -----------------------------------------------------------------------------


@pytest.mark.slow
def test_a_mistake_is_named_with_its_first_wrong_step_and_a_way_to_go_on(
    cli: Cli, copy: Course, solutions: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(copy.root)
    text = solutions["dictionary_lookup"]
    scaled = "torch.softmax(scores / temp, dim=-1)"
    assert scaled in text
    path = copy.student_folder / "dictionary_lookup.py"
    before = path.read_text()
    path.write_text(text.replace(scaled, "torch.softmax(scores / temp, dim=-2)"))
    said = cli("check", "dictionary_lookup", "--all")
    path.write_text(before)
    assert said.code == 1
    assert "First wrong step: `weights`" in said.out
    assert "→ The softmax runs over the queries" in said.out
    assert "In the end the course's hidden checks decide" in " ".join(said.out.split())


@pytest.mark.slow
def test_what_only_a_case_sees_is_wrong_and_nothing_says_well_done(
    grade: Grade, copy: Course, solutions: dict[str, str]
) -> None:
    text = solutions["masked_softmax"]
    assert "raise ValueError" in text
    lenient = text.replace("raise ValueError", "print")
    report = grade(copy, {"masked_softmax": lenient}, "masked_softmax")
    (result,) = report.exercises
    assert (result.points, result.passed) == (result.max_points, False)
    assert result.first_failure is not None
    assert "other calls" in result.first_failure.message
    assert report.advice != "Everything here passes."


@pytest.mark.slow
def test_a_forbidden_call_earns_nothing(
    grade: Grade, copy: Course, solutions: dict[str, str]
) -> None:
    text = solutions["layer_norm"]
    body = text.rindex("# --- solution")
    kernel = "\n        return nn.functional.layer_norm(x, x.shape[-1:], self.gamma, self.beta)\n"
    (result,) = grade(copy, {"layer_norm": text[:body] + kernel}, "layer_norm").exercises
    assert result.points == 0
    assert result.tests[0].kind == "Forbidden"


# --- its file -------------------------------------------------------------------------------------


def test_a_copy_without_recorded_answers_still_checks(
    cli: Cli, tiny_copy: Path, monkeypatch: pytest.MonkeyPatch, tiny_solution: str
) -> None:
    cli("build", "--course", tiny_copy)
    assert not (tiny_copy / "exercises" / records.FOLDER).exists()  # it has no cases
    shutil.rmtree(tiny_copy / "reference")
    (tiny_copy / "exercises" / "scale.py").write_text(tiny_solution)
    monkeypatch.chdir(tiny_copy)
    assert cli("check").code == 0


def test_what_cannot_be_asked_is_not_called_right(
    grade: Grade, copy: Course, solutions: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise KeyError("a bug")

    monkeypatch.setattr(Diagnostician, "ask", broken)
    (result,) = grade(copy, {"layer_norm": solutions["layer_norm"]}, "layer_norm").exercises
    assert not result.passed
    *tests, check = result.tests
    assert {test.outcome for test in tests} == {"passed"}
    assert check.outcome == "error"
    assert check.message == "the grader could not try other calls (KeyError: 'a bug')"


@pytest.mark.parametrize("damage", ["empty", "cut", "other"])
def test_a_damaged_file_says_how_to_get_another(
    damage: str, course: Course, tmp_path: Path
) -> None:
    shutil.copytree(course.student_folder, tmp_path / "exercises")
    copy = load_course(tmp_path)
    path = record.path_of(copy, "layer_norm")
    if damage == "other":
        found = record.load_record(copy, "layer_norm")
        assert found is not None
        later = msgspec.structs.replace(found.record, format=record.FORMAT + 1)
        path.write_bytes(record.Recorded(found.cases, later).packed())
    else:
        data = path.read_bytes()
        path.write_bytes(data[: len(data) // 2] if damage == "cut" else b"")
    with pytest.raises(Exception, match=r"layer_norm\.bin") as error:
        record.load_record(copy, "layer_norm")
    assert "download the course again" in str(error.value.remedy)  # type: ignore[attr-defined]


def test_the_same_course_gives_the_same_file(course: Course) -> None:
    found = record.load_record(course, "layer_norm")
    assert found is not None
    assert found.packed() == record.path_of(course, "layer_norm").read_bytes()
