"""Whatever a hidden suite hands to students' functions is drawn in each run, or is public."""

from __future__ import annotations

from pathlib import Path

import pytest
from crossing import constants_of

from grader.course.course import load_course
from grader.sandbox.host.zygote import Zygote

pytestmark = pytest.mark.in_turn

ROOT = Path(__file__).parent.parent
COURSES = {"attention": ROOT, "sampling": ROOT / "examples" / "sampling"}
EXERCISES = [
    pytest.param(key, each.name, marks=[pytest.mark.night] if each.training else [])
    for key, root in COURSES.items()
    for each in load_course(root).exercises
]


@pytest.mark.slow
@pytest.mark.parametrize(("of", "name"), EXERCISES)
def test_no_suite_hands_over_a_constant_that_is_not_public(
    of: str, name: str, zygote: Zygote
) -> None:
    assert constants_of(load_course(COURSES[of]), name, zygote) == []


PLANTED = """
    student.scale(torch.tensor([SECRET[n] for n in range(12)]), 2.0)


@pytest.mark.points(1)
def test_negative"""
TABLE = "3, 7, 4, 6, 5, 9, 2, 6, 5, 3, 5, 8"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("secret", "found"),
    [
        (f"SECRET = {TABLE}", [(3, 7, 4, 6, 5, 9, 2, 6, 5, 3, 5, 8)]),
        ("SECRET = [ord(letter) for letter in 'the pig and the apple']", [(*b"the pig and ",)]),
        ("SECRET = range(5, 17)", []),
    ],
)
def test_a_constant_of_a_suite_is_found(
    tiny_copy: Path, zygote: Zygote, secret: str, found: list[tuple[int, ...]]
) -> None:
    path = tiny_copy / "reference" / "scale" / "test_hidden.py"
    text = path.read_text("utf-8")
    assert text.count("\n\n@pytest.mark.points(1)\ndef test_negative") == 1
    planted = text.replace("\n\n@pytest.mark.points(1)\ndef test_negative", PLANTED)
    path.write_text(
        planted.replace("import pytest\n", f"import pytest\nimport torch\n\n{secret}\n", 1)
    )
    assert constants_of(load_course(tiny_copy), "scale", zygote) == found
