"""What a student reads when their code fails: what, where, which call, and what it printed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import click
import pytest
import torch
from commandline import Grade

from grader.course.course import Course, load_course
from grader.errors import Mismatch
from grader.grading.compare import assert_close
from grader.report import ExerciseResult, Outcome, Report
from grader.reports import text

pytestmark = pytest.mark.in_turn

GradeTiny = Callable[[str], ExerciseResult]
HURRIED = {"call_seconds": 1.0, "exercise_seconds": 30.0}
SCALE = """
import torch
from torch import nn

def scale(x, factor):
    if factor < 0:
        raise ValueError("a negative factor")
    return x * factor

class Scale(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x):
        return x * self.weight
"""


def edited(*edits: tuple[str, str]) -> str:
    code = SCALE
    for old, new in edits:
        assert code.count(old) == 1
        code = code.replace(old, new)
    return code


def failed(result: ExerciseResult, name: str) -> Outcome:
    return next(test for test in result.tests if test.name == name)


def shown(result: ExerciseResult, height: int | None = 24) -> str:
    report = Report("s001", 7, "hidden", (), (result,))
    return click.unstyle(text.render(report, height))


# --- imports --------------------------------------------------------------------------------------


def test_imports_that_an_exercise_does_not_need_cost_nothing(grade_tiny: GradeTiny) -> None:
    imports = """
import numpy as np
import matplotlib.pyplot as plt, seaborn as sns
import nobody_installs_this as nit
from nobody_installs_this.part import Thing, helper
from tqdm.auto import tqdm, trange
from google.colab import drive
from IPython import get_ipython
from IPython.display import display
try:
    import nobody_installs_this
    has_it = True
except ImportError:
    has_it = False

assert not has_it
drive.mount("/content")
get_ipython().run_line_magic("matplotlib", "inline")
plt.rcParams["figure.dpi"] = 300
figure, (left, right) = plt.subplots(1, 2)
left.plot(np.arange(3.0))
with plt.style.context("dark"):
    display(figure)
with tqdm(total=3) as bar:
    bar.update(1)
assert [*tqdm([1, 2])] == [*trange(1, 3)] == [1, 2]
assert [i for i, _ in tqdm(enumerate("ab"), total=2)] == [0, 1]

def unused(x: nit.Frame, y: Thing["a b"]): return helper(x)
"""
    result = grade_tiny(imports + SCALE)
    assert result.passed, result


def test_a_package_that_is_missing_fails_where_it_is_used(grade_tiny: GradeTiny) -> None:
    code = "from einsteinops import rearrange\n" + edited(
        ("return x * factor", "return rearrange(x * factor, 'a b -> a b')")
    )
    result = grade_tiny(code)
    assert failed(result, "test_module").outcome == "passed"
    test = failed(result, "test_twice")
    assert test.message.startswith("your code raised ModuleNotFoundError: No module named 'einst")
    assert test.where is not None
    assert test.where.source.strip() == "return rearrange(x * factor, 'a b -> a b')"


@pytest.mark.slow
@pytest.mark.parametrize(
    "use",
    ["missing.x()", "class A(missing.B): pass", "missing + 1", "list(missing)", "not missing"],
)
def test_any_use_of_a_missing_package_fails(grade_tiny: GradeTiny, use: str) -> None:
    result = grade_tiny(f"import missing\n{use}\n{SCALE}")
    assert "No module named 'missing'" in failed(result, "test_twice").message
    assert result.points == 0


@pytest.mark.slow
def test_a_misspelt_part_of_an_installed_package_fails_at_once(grade_tiny: GradeTiny) -> None:
    result = grade_tiny(f"import torch.nn.functionals as F\n{SCALE}")
    assert "No module named 'torch.nn.functionals'" in failed(result, "test_twice").message


@pytest.mark.slow
@pytest.mark.parametrize(
    "way",
    [
        "import matplotlib.torch as t",
        "from tqdm import torch as t",
        "from nobody_installs_this import torch as t",
        "import tqdm; t, = tqdm.tqdm([torch])",
        "import tqdm; t = next(iter(tqdm.tqdm([torch])))",
    ],
)
def test_no_stand_in_leads_to_a_forbidden_call(grade_tiny: GradeTiny, way: str) -> None:
    code = edited(("return x * factor", f"{way}\n    return t.multiply(x, factor)"))
    assert failed(grade_tiny(code), "test_twice").outcome != "passed"


@pytest.mark.slow
def test_a_course_says_which_packages_do_nothing(tiny_copy: Path, grade: Grade) -> None:
    settings = tiny_copy / "reference/course.toml"
    before = load_course(tiny_copy)
    settings.write_text(settings.read_text() + 'mute_imports = ["math"]\n')
    course = load_course(tiny_copy)
    assert course.hash != before.hash
    code = "import math\nassert not [*math.sin(3)]\n" + SCALE
    assert grade(course, {"scale": code}).passed
    assert not grade(before, {"scale": code}).passed


def test_an_array_of_numpy_is_named(grade_tiny: GradeTiny) -> None:
    code = "import numpy as np\n" + edited(("return x * factor", "return np.array(x) * factor"))
    test = failed(grade_tiny(code), "test_twice")
    assert test.message == "your code returned a NumPy array; return a torch tensor"


# --- values and calls -----------------------------------------------------------------------------


@pytest.mark.parametrize("off", [1e-5, 3e-7, 2e-9])
def test_values_that_differ_look_different(off: float) -> None:
    expected = torch.ones(2, 3, dtype=torch.float64)
    with pytest.raises(Mismatch) as caught:
        assert_close(expected + off, expected, "the sum", rtol=0, atol=off / 2)
    difference = caught.value.difference
    assert difference is not None
    got, want = caught.value.message.split(", where ")
    assert got.split(" is ")[1].split()[0] != want.split()[0]
    assert difference.actual.text != difference.expected.text
    assert difference.actual.values != difference.expected.values


def test_values_that_are_far_apart_keep_four_digits() -> None:
    with pytest.raises(Mismatch, match=r"is 1\.5000 at \[0\], where 1\.0000 is expected"):
        assert_close(torch.tensor([1.5, 1]), torch.ones(2), "the sum")


def test_two_answers_that_are_nan_are_not_said_to_differ() -> None:
    nan = torch.tensor([torch.nan, 1.0])
    with pytest.raises(Mismatch) as caught:
        assert_close(nan, nan.clone(), "the output in bfloat16")
    says = "the output in bfloat16 is compared with another answer of your code, which is nan"
    assert caught.value.message == says


def test_a_check_of_an_exception_shows_the_call(grade_tiny: GradeTiny) -> None:
    result = grade_tiny(edited(("if factor < 0", "if False")))
    assert failed(result, "test_negative").message == (
        "nothing was raised by scale(float64 (3,), -1.0), where ValueError is expected"
    )


def test_a_call_shows_the_shapes_of_tensors_in_a_list(tiny_copy: Path, grade: Grade) -> None:
    suite = tiny_copy / "reference/scale/test_hidden.py"
    old, new = "(rng.randn(3), -1.0)", "([x := rng.randn(3), (x.float(), 'key')], [x] * 60)"
    assert old in suite.read_text()
    suite.write_text(suite.read_text().replace(old, new))
    (result,) = grade(load_course(tiny_copy), {"scale": SCALE}).exercises
    assert failed(result, "test_negative").called == (
        "scale([float64 (3,), (float32 (3,), 'key')], [float64 (3,), float64 (3,), float64 (3,…)"
    )


def test_a_call_is_named_as_its_author_wrote_it(grade_tiny: GradeTiny) -> None:
    result = grade_tiny(edited(("return x * self.weight", "return x * self.wait")))
    assert failed(result, "test_module").called == "Scale(3).forward(float64 (2, 3))"
    assert "the call: Scale(3).forward(float64 (2, 3))" in shown(result)


# --- places ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_column_that_matters_is_on_the_screen(grade_tiny: GradeTiny) -> None:
    terms = " + ".join(f"0 * factor ** {n}" for n in range(90))
    for broken in ("factors", "?"):
        result = grade_tiny(edited(("return x * factor", f"return x * ({terms} + {broken})")))
        lines = shown(result, None).splitlines()
        place = next(n for n, line in enumerate(lines) if line.strip() == "^")
        assert all(len(line) < 80 for line in lines)
        assert lines[place - 1][lines[place].index("^") :].startswith(broken)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("!pip install torch", "line 1 is a command for a notebook: remove it"),
        ("```python", "line 1 is a mark of a chat or a page around the code: remove it"),
        ("<<<<<<< HEAD", "line 1 is a mark that git left where two versions conflict"),
    ],
)
def test_a_line_that_is_no_python_is_named(grade_tiny: GradeTiny, line: str, says: str) -> None:
    assert says in failed(grade_tiny(f"{line}\n{SCALE}"), "test_twice").message


def test_the_line_that_set_an_error_off_is_named(grade_tiny: GradeTiny) -> None:
    result = grade_tiny(edited(("return x * factor", "return x @ factor")) + "\nscale(3, 4)\n")
    test = failed(result, "test_twice")
    assert test.where is not None
    assert test.where.source.strip() == "return x @ factor"
    assert "(set off by scale.py:18, `scale(3, 4)`); put what only tries the" in test.message


def test_code_that_calls_itself_is_shown_where_it_does(grade_tiny: GradeTiny) -> None:
    calls = "y = x * factor\n    return scale(y, factor) + 0"
    test = failed(grade_tiny(edited(("return x * factor", calls))), "test_twice")
    assert "calls itself again and again" in test.message
    assert test.where is not None
    assert test.where.source.strip() == "return scale(y, factor) + 0"


# --- printing -------------------------------------------------------------------------------------


@pytest.mark.parametrize("height", [24, 20])
def test_what_was_printed_is_on_a_small_screen(grade_tiny: GradeTiny, height: int) -> None:
    code = edited(("return x * factor", "print('the factor', factor)\n    return x + factor"))
    page = shown(grade_tiny(code), height)
    assert "    your code printed:\n      the factor 2.0\n" in page
    assert len(page.splitlines()) <= height


# --- code that does not end -----------------------------------------------------------------------


@pytest.fixture
def hurried(tiny_course: Course) -> Course:
    exercise = tiny_course["scale"]
    quick = type(exercise)(
        **{field: getattr(exercise, field) for field in exercise.__struct_fields__} | HURRIED
    )
    return replace(tiny_course, exercises=(quick,))


LOOP = """print("begun")
    while factor < 9:
        x = x + 0
    return x * factor"""


@pytest.mark.slow
def test_an_endless_loop_costs_one_time_limit_and_names_its_line(
    hurried: Course, grade: Grade
) -> None:
    begun = time.monotonic()
    result = grade(hurried, {"scale": edited(("return x * factor", LOOP))}).exercises[0]
    assert time.monotonic() - begun < 10
    tests = [failed(result, name) for name in ("test_twice", "test_thrice")]
    assert {test.kind for test in tests} == {"Timeout"}
    assert failed(result, "test_module").outcome == "passed"
    places = [test.where for test in tests if test.where]
    assert {where.line for where in places} <= {9, 10}
    assert places
    assert any("it was at `" in test.message for test in tests)
    assert any("begun" in test.printed for test in tests)


@pytest.mark.slow
def test_code_that_hides_where_it_is_is_late_all_the_same(hurried: Course, grade: Grade) -> None:
    hide = "import signal\nfor n in (10, 12, 14): signal.signal(n, signal.SIG_IGN)\n"
    result = grade(hurried, {"scale": hide + edited(("return x * factor", LOOP))}).exercises[0]
    assert "Timeout" in {test.kind for test in result.tests}
    assert all(test.where is None for test in result.tests if test.kind == "Timeout")


@pytest.mark.slow
def test_a_slow_import_of_an_installed_package_is_not_the_codes_time(
    hurried: Course, grade: Grade
) -> None:
    differentiate = "torch.func.grad(lambda v: (v**2).sum())(torch.ones(3))"  # many modules at once
    edit = ("return x * factor", f"{differentiate}\n    return x * factor")
    exercise = grade(hurried, {"scale": edited(edit)}).exercises[0]
    assert {test.message for test in exercise.tests} == {""}


@pytest.mark.slow
def test_what_a_file_does_when_it_is_loaded_has_one_time_limit(
    hurried: Course, grade: Grade
) -> None:
    begun = time.monotonic()
    result = grade(hurried, {"scale": SCALE + "\nwhile True:\n    pass\n"}).exercises[0]
    assert time.monotonic() - begun < 10
    assert result.points == 0
    assert all("it was at `" in test.message for test in result.tests if test.kind == "Timeout")
