"""What the student's code computes is drawn: as squares on a page, as shades in a terminal."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from commandline import Grade

from grader.course.course import load_course
from grader.report import Drawing, ExerciseResult, LossCurve, Outcome, Report
from grader.reports import charts, pages, text
from grader.reports.sketches import sketches

DRAWING = """
import torch


def draw(module, trained):
    yield {
        "title": "Scaled",
        "says": "Each row twice.",
        "weights": module.scale(torch.eye(3), 2.0),
        "rows": ["a", "b", "c"],
    }
    yield {"title": "Heads", "says": "Two.", "weights": module.scale(torch.ones(2, 3, 4), 1.0)}
    yield {"title": "A text", "says": "None was trained.", "text": f"trained: {trained('it', 0)}"}
    yield {"title": "No number", "says": "-", "weights": torch.full((2, 2), torch.nan)}
    yield {"title": "No tensor", "says": "-", "weights": [[1.0]]}
    raise LookupError("and nothing more")
"""


@pytest.fixture
def drawn(tiny_copy: Path, grade: Grade) -> ExerciseResult:
    (tiny_copy / "reference" / "scale" / "drawing.py").write_text(DRAWING)
    course = load_course(tiny_copy)
    (result,) = grade(course, {"scale": course["scale"].read("solution.py")}).exercises
    return result


def test_pictures_show_what_the_students_code_computes(drawn: ExerciseResult) -> None:
    scaled, heads, words = drawn.pictures
    assert scaled.matrices == (((2.0, 0.0, 0.0), (0.0, 2.0, 0.0), (0.0, 0.0, 2.0)),)
    assert scaled.rows == ("a", "b", "c")
    assert [len(heads.matrices), len(heads.matrices[0]), len(heads.matrices[0][0])] == [2, 3, 4]
    assert words.text == "trained: None"
    assert drawn.passed


def test_code_that_cannot_be_drawn_has_no_picture(tiny_copy: Path, grade: Grade) -> None:
    (tiny_copy / "reference" / "scale" / "drawing.py").write_text(DRAWING)
    course = load_course(tiny_copy)
    broken = "def scale(x, factor):\n    raise KeyError(1)\n"
    (result,) = grade(course, {"scale": broken}).exercises
    assert result.pictures == ()
    assert not result.passed


def test_a_students_copy_has_the_drawing(tiny_copy: Path) -> None:
    course = load_course(tiny_copy)
    assert course["scale"].drawing == ""
    (tiny_copy / "reference" / "scale" / "drawing.py").write_text(DRAWING)
    assert load_course(tiny_copy)["scale"].drawing == DRAWING
    assert load_course(tiny_copy).hash == course.hash  # it decides no result


PICTURES = (
    Drawing("Alignment", "A row is a step.", (((0.9, 0.1), (0.0, 1.0)),), ("x", "y"), ("<b>", "d")),
    Drawing("Heads", "Two of them.", (((1.0, 0.0), (0.5, 0.5)), ((1.0, 0.0), (-0.5, 0.5)))),
    Drawing("A sample", "Drawn from the model.", text="a <b>cat</b>\nand a dog"),
)
CURVE = LossCurve.of("reversing", [(n, 3 / (n + 1)) for n in range(1000)])
TEST = Outcome("test_it", "It learns.", "passed", 3, 3)
RESULT = ExerciseResult("tiny", "Tiny", 3, 3, "", (TEST,), curves=(CURVE,), pictures=PICTURES)
REPORT = Report("s001", 7, "hidden", (), (RESULT,), versions={}, hashes={})


def test_a_page_draws_squares_curves_and_texts() -> None:
    page = pages.render(REPORT, "html")
    squares = re.findall(r"<rect[^>]*><title>([^<]*)</title>", page)
    assert squares[:4] == [
        "x → &lt;b&gt;: 0.900",
        "x → d: 0.100",
        "y → &lt;b&gt;: 0.000",
        "y → d: 1.000",
    ]
    assert len(squares) == 12
    assert "a &lt;b&gt;cat&lt;/b&gt;\nand a dog" in page
    (points,) = re.findall(r'<polyline points="([^"]*)"', page)
    assert points.split()[0] == "0.0,0.0"
    assert points.split()[-1] == "360.0,120.0"
    assert "<figcaption>head 1</figcaption>" in page


def test_a_long_curve_keeps_its_ends_and_few_points() -> None:
    assert (CURVE.steps[0], CURVE.steps[-1]) == (0, 999)
    assert len(CURVE.steps) == len(CURVE.losses) <= 121
    assert CURVE.losses[-1] == 0.003


@pytest.mark.parametrize("losses", [(), (1.0,), (1.0, "inf"), (1.0, float("nan"))])
def test_a_curve_of_no_numbers_is_not_drawn(losses: tuple[float, ...]) -> None:
    assert charts.curve(range(len(losses)), losses) is None
    curve = LossCurve("it", tuple(range(len(losses))), losses)
    result = ExerciseResult("tiny", "Tiny", 3, 3, "", (TEST,), curves=(curve,))
    assert list(sketches(result)) == []


def test_a_terminal_shows_shades_and_a_line() -> None:
    lines = list(sketches(RESULT))
    assert lines[0] == "the loss while reversing was trained: 3 → 0.003 at step 999"
    assert re.fullmatch(r"  █▃?[▁▂▃]+", lines[1])
    assert lines[2:5] == ["Alignment", "  x ██░░", "  y   ██"]
    assert [line for line in lines if "more" in line] == ["  1 more head: --format html"]
    assert all(len(line) < 78 for line in lines)


def test_a_small_terminal_leaves_out_what_has_no_room() -> None:
    whole, small = text.render(REPORT, None), text.render(REPORT, 12)
    assert "Alignment" in whole
    assert "Alignment" not in small
    assert len(small.splitlines()) < 12
