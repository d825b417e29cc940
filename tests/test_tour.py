"""One sentence through the model: each stage shows a student's own code, or what stands in."""

from __future__ import annotations

import html
from collections.abc import Callable
from pathlib import Path

import pytest
from commandline import Cli, Grade
from corpus.verdicts import students_copy

from grader.course.course import Course, load_course
from grader.report import Drawing

FIRST = {"dictionary_lookup", "masked_softmax", "causal_attention", "multi_head_attention"}
PARTS = {*FIRST, "layer_norm", "feed_forward", "transformer_block"}
LEADER = "transformer_block"
RIGHT: list[Drawing] = []  # the stages of right files, kept for all tests
NEXT_WORDS = ["cat", "sat", "on", "the", "mat"]


@pytest.fixture(scope="module")
def copy(course: Course, tmp_path_factory: pytest.TempPathFactory) -> Course:
    """What students have."""
    return students_copy(course, tmp_path_factory.mktemp("students"))


@pytest.fixture
def stages(course: Course, copy: Course, grade: Grade) -> Callable[..., tuple[Drawing, ...]]:
    """Returns the stages of right files, some of which are changed or missing."""

    def led(**changed: str) -> tuple[Drawing, ...]:
        if changed or not RIGHT:
            files = {name: course[name].read("solution.py") for name in course.names} | changed
            present = {name: text for name, text in files.items() if text}
            (result,) = grade(copy, present, LEADER).exercises
            if changed:
                return result.pictures
            RIGHT.extend(result.pictures)
        return tuple(RIGHT)

    return led


def test_the_sentence_goes_through_a_students_own_exercises(
    stages: Callable[..., tuple[Drawing, ...]],
) -> None:
    made = {stage.whose for stage in stages() if stage.whose}
    assert made == {f"Made by your `{name}`." for name in {*PARTS, "softmax_temperature"}}


def test_the_last_stage_says_the_next_word(stages: Callable[..., tuple[Drawing, ...]]) -> None:
    last = stages()[-1]
    likely = [last.columns[row.index(max(row))] for row in last.matrices[0]]
    assert likely[:-1] == NEXT_WORDS == list(last.rows[1:])
    assert min(max(row) for row in last.matrices[0][:-1]) > 0.8


@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        ("layer_norm", ("correction=0", "correction=1"), "and not right yet: PyTorch's part"),
        ("feed_forward", ("self.linear2(", "1 / 0 + self.linear2("), "stops with an error"),
        ("masked_softmax", ("return", "return 0.5 *"), "and not right yet"),
        ("causal_attention", ("        return", "        return None #"), "gives no such tensor"),
    ],
)
def test_a_part_that_is_wrong_changes_no_later_stage(
    course: Course,
    stages: Callable[..., tuple[Drawing, ...]],
    name: str,
    change: tuple[str, str],
    says: str,
) -> None:
    text = course[name].read("solution.py")
    assert change[0] in text
    right, found = stages(), stages(**{name: text.replace(*change)})
    differing = [after for before, after in zip(right, found, strict=True) if before != after]
    assert says in differing[0].whose
    assert f"`{name}`" in differing[0].whose
    # The block is made of the student's own parts, and is not right with a wrong one.
    assert all(f"`{LEADER}`" in stage.whose for stage in differing[1:])


def test_what_is_missing_has_a_stand_in(stages: Callable[..., tuple[Drawing, ...]]) -> None:
    without = stages(dictionary_lookup="")
    for stage, right in zip(without, stages(), strict=True):
        assert stage.title == right.title
        for row, other in zip(stage.matrices[0], right.matrices[0], strict=True):
            assert row == pytest.approx(other, abs=2e-3)
    whose = [stage.whose for stage in without]
    assert "PyTorch's part, as there is no `dictionary_lookup` yet." in whose


@pytest.mark.slow
def test_the_tour_can_be_taken_at_any_time(
    cli: Cli, tmp_path: Path, course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli("init", tmp_path / "mine").code == 0
    monkeypatch.chdir(tmp_path / "mine")
    own = tmp_path / "mine" / "exercises"
    (own / "layer_norm.py").write_text(course["layer_norm"].read("solution.py"))
    (own / f"{LEADER}.py").unlink()
    said = cli("tour")
    assert (said.code, "wrote grader-tour.html" in said.err) == (0, True)
    assert "Made by your `layer_norm`." in said.out
    assert said.out.count("PyTorch's part, as there is no") == len(PARTS) - 1
    assert max(map(len, said.out.splitlines())) < 80
    page = (tmp_path / "mine" / "grader-tour.html").read_text()
    assert "default-src 'none'" in html.unescape(page)
    assert page.count("<figure>") == 9 + 1  # one stage has two heads
    assert not (own / f"{LEADER}.py").exists()
    status = cli("status").out
    assert f"{LEADER}  " in status
    assert "no file" in status


def test_a_class_takes_no_time_for_the_tour(course: Course, grade: Grade) -> None:
    (right,) = grade(course, {LEADER: course[LEADER].read("solution.py")}, LEADER).exercises
    assert (right.passed, right.pictures) == (True, ())


def test_a_teacher_is_told_where_a_tour_begins(cli: Cli, course: Course) -> None:
    said = cli("tour", "--course", course.root)
    assert (said.code, "students' copy" in said.err, "grader init" in said.err) == (2, True, True)


def test_a_course_without_a_tour_says_so(cli: Cli, tiny_copy: Path) -> None:
    assert not any(each.leads_tour for each in load_course(tiny_copy).exercises)
    said = cli("tour", "--course", tiny_copy)
    assert (said.code, "no exercise of this course leads a tour" in said.err) == (2, True)
