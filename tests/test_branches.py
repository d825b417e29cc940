"""What cases ask in one branch of an option, they ask in the others, or the author says why not."""

from __future__ import annotations

from pathlib import Path

import pytest
from commandline import Cli

from grader.commands.branches import AskedPromises, Unasked, load_reasons
from grader.commands.watched_calls import watch_calls
from grader.course.course import Course, load_course

SOLUTION = '''"""Reference solution: scaling."""

import torch
from torch import Tensor, nn


def scale(x: Tensor, factor: float, negate: bool = False, lens: Tensor | None = None) -> Tensor:
    """Return x times factor. Raises ValueError for a negative factor."""
    # --- solution
    if factor < 0:
        raise ValueError("a negative factor")
    x = x if lens is None else x * lens.view(len(x), -1)
    return -x * factor if negate else x * factor
    # --- end


class Scale(nn.Module):
    """Multiply by a learned weight."""

    def __init__(self, size: int, dropped: bool = False) -> None:
        super().__init__()
        # --- solution
        self.weight = nn.Parameter(torch.ones(size))
        self.dropout = nn.Dropout(0.5 if dropped else 0.0)
        # --- end

    def forward(self, x: Tensor) -> Tensor:
        """Return x times the weight."""
        # --- solution
        return self.dropout(x * self.weight)
        # --- end


def fit(model: Scale, steps: int, double: bool = False, report=None) -> None:
    """Train the model."""
    # --- solution
    for step in range(steps):
        report(step, 1.0)
    # --- end
'''
SUITE = '''"""Hidden tests of scale."""

from grader.authors import *
from grader.attention_cases import *

test_cases = Check("Calls come out right.", points=8)
case = test_cases.case
case("False.", output("scale", drawn(2, 3), 2.0), hidden=True)
case("True.", output("scale", drawn(2, 3), 2.0, negate=True))
'''
HALF = 'output("scale", drawn(2, 3, dtype=torch.bfloat16), 2.0)'
PLAIN, NEGATED = "scale(negate=False)", "scale(negate=True)"


@pytest.fixture
def folder(tiny_copy: Path) -> Path:
    """The exercise `scale` of a course, with options and a suite made of cases."""
    folder = tiny_copy / "reference" / "scale"
    (folder / "solution.py").write_text(SOLUTION)
    (folder / "mistakes.toml").write_text("")
    (folder / "test_hidden.py").write_text(SUITE)
    return folder


def tabulate(folder: Path, *cases: str, **options: str) -> AskedPromises:
    lines = [f'case("{n}.", {case})\n' for n, case in enumerate(cases)]
    (folder / "test_hidden.py").write_text(SUITE + "import torch\n" + "".join(lines))
    course = load_course(folder.parents[1])
    return watch_calls(course, course["scale"], 1)


def asked(table: AskedPromises) -> dict[str, set[str]]:
    return {str(branch): {*count} for branch, count in table.counts.items()}


@pytest.mark.parametrize(
    ("case", "promise"),
    [
        ('gradient("scale", drawn(2, 3), 2.0)', "gradients"),
        (HALF, "half precision"),
        ('output("scale", drawn(2, 3, times=1e3), 2.0)', "large numbers"),
        ('output("scale", turned(drawn(2, 3)), 2.0)', "views"),
        ('output("scale", drawn(1, 3), 2.0)', "an axis of size 1"),
        ('changed("scale", drawn(2, 3), 2.0)', "arguments left alone"),
        (
            "lambda student, rng: assert_linear_memory("
            "student, lambda n: student.scale(rng.randn(n, 3), 2.0), 20)",
            "memory",
        ),
        (
            "lambda student, rng: assert_vectorised(student, lambda n=2: "
            'lambda: student.scale(rng.randn(n, 3), 2.0), {"rows": {"n": (5, 9)}})',
            "work",
        ),
    ],
)
def test_what_a_call_is_asked_for_is_read_off_the_call(
    folder: Path, case: str, promise: str
) -> None:
    table = tabulate(folder, case)
    assert promise in asked(table)[PLAIN]
    assert promise not in asked(table)[NEGATED]
    assert Unasked(NEGATED, promise) in table.missing


@pytest.mark.parametrize(
    ("case", "promises"),
    [
        ('output(built("Scale", 3, True, training=True), drawn(2, 3))', "training mode"),
        ('output(built("Scale", 3, True, training=True), drawn(2, 3))', "random draws"),
        ('moved("Scale", 3, True, x=drawn(2, 3, dtype=torch.float32))', "another device"),
        (
            'gradient(built("Scale", 3, True, training=True), drawn(2, 3))',
            "gradients and random draws",
        ),
    ],
)
def test_a_module_has_the_options_of_its_constructor(
    folder: Path, case: str, promises: str
) -> None:
    table = tabulate(folder, case)
    assert promises in asked(table)["Scale(dropped=True)"]
    assert asked(table)["Scale(dropped=False)"] == set()


def test_a_promise_is_asked_in_the_same_branch_only_where_a_case_does(folder: Path) -> None:
    both = HALF.replace("2.0)", "2.0, negate=True)")
    assert Unasked(NEGATED, "half precision") not in tabulate(folder, HALF, both).missing


@pytest.mark.parametrize("maker", ["only_dtype(", "accepted("])
def test_a_shape_and_truth_values_say_nothing_of_the_precision(folder: Path, maker: str) -> None:
    only = HALF.replace("output(", maker)
    assert "half precision" not in asked(tabulate(folder, only))[PLAIN]


def test_each_text_of_a_literal_is_a_branch(folder: Path) -> None:
    path = folder / "solution.py"
    kinds = "kind: Literal['max', 'mean', 'sum'] = 'max'"
    text = path.read_text().replace("negate: bool = False", kinds)
    path.write_text(
        text.replace("if negate", "if kind == 'sum'").replace(
            "import torch\n", "from typing import Literal\n\nimport torch\n", 1
        )
    )
    suite = folder / "test_hidden.py"
    suite.write_text(suite.read_text().replace("negate=True", "'sum'"))
    course = load_course(folder.parents[1])
    found = asked(watch_calls(course, course["scale"], 1))
    assert found["scale(kind='max')"] == found["scale(kind='sum')"] == {"values"}
    assert found["scale(kind='mean')"] == set()


def test_two_promises_that_are_asked_apart_are_missing_together(folder: Path) -> None:
    large = HALF.replace("drawn(2, 3", "drawn(2, 3, times=1e3")
    apart = HALF, 'output("scale", drawn(2, 3, times=1e3), 2.0)'
    table = tabulate(folder, large, *(each.replace("2.0)", "2.0, True)") for each in apart))
    missing = [pair.promise for pair in table.missing if pair.branch == NEGATED]
    assert missing == ["half precision and large numbers"]


def test_a_tensor_that_may_be_none_has_a_branch_for_each_number_of_its_axes(folder: Path) -> None:
    given = 'output("scale", drawn(2, 3), 2.0, lens=torch.ones({}))'
    table = tabulate(folder, given.format("2"), given.format("2, 3"))
    names = [branch.value for branch in table.counts if branch.option == "lens"]
    assert sorted(names) == ["1 axis", "2 axes", "None"]


def test_an_option_that_no_case_gives_is_missing(folder: Path) -> None:
    assert Unasked("scale(lens=given)", "values") in tabulate(folder).missing


def test_other_numbers_of_axes_are_one_branch(folder: Path) -> None:
    shapes = [f'output("scale", drawn({shape}), 2.0)' for shape in ("3", "2, 2, 3", "4, 2, 2, 3")]
    found = asked(tabulate(folder, *shapes, 'gradient("scale", drawn(2, 3), 2.0)'))
    assert "gradients" in found["scale(x of 2 axes)"]
    assert found["scale(x of other than 2 axes)"] == {"values"}


@pytest.mark.parametrize(
    "key", ["decides=False", 'about="refusals"'], ids=["decides nothing", "a refusal"]
)
def test_what_decides_nothing_and_what_is_refused_ask_nothing(folder: Path, key: str) -> None:
    assert "half precision" not in asked(tabulate(folder, f"{HALF}, {key}"))[PLAIN]


def test_trainings_are_not_watched(folder: Path) -> None:
    trains = (
        "lambda student, rng: steps_reported(student, 3, "
        "lambda to: student.fit(student.Scale(3), 3, True, to))"
    )
    short = "lambda student, rng: student.fit(student.Scale(3).train(), 0, report=None)"
    table = tabulate(folder, trains, short)
    assert not [pair for pair in table.missing if pair.branch.startswith("fit(")]


@pytest.mark.parametrize(
    ("reasons", "problem"),
    [
        (f'["{NEGATED}"]\n"half precision" = "A sign has no precision."', ""),
        ("", f"no case asks for half precision with {NEGATED}; add one, or say why not"),
        (f'["{NEGATED}"]\n"half precision" = " "', "half precision: it has no reason"),
        (f'["{NEGATED}"]\n"values, half precision" = "No."', "values: a case asks for it"),
        (
            f'["{NEGATED}"]\n"half precison" = "No."',
            "there is no half precison; did you mean `half precision`?",
        ),
        ('["scale(negat=True)"]\n"values" = "No."', "there is no scale(negat=True); did you mean"),
    ],
)
def test_a_reason_is_for_a_pair_that_is_missing(folder: Path, reasons: str, problem: str) -> None:
    lens = '["scale(lens=given)"]\n"values, half precision" = "Not here."\n'
    (folder / "not_asked.toml").write_text(lens + reasons)
    table = tabulate(folder, HALF)
    course = load_course(folder.parents[1])
    problems = [": ".join(each) for each in table.problems(load_reasons(course["scale"]))]
    assert any(problem in each for each in problems) if problem else not problems, problems


@pytest.mark.slow
def test_validate_names_the_pairs_and_counts_the_reasons(folder: Path, cli: Cli) -> None:
    (folder / "not_asked.toml").write_text('["scale(lens=given)"]\n"values" = "Not here."\n')
    tabulate(folder, 'gradient("scale", drawn(2, 3), 2.0)')
    said = cli("validate", "--branches", "--course", folder.parents[1])
    plain = " ".join(said.out.split())
    says = f"reference/scale/test_hidden.py: no case asks for gradients with {NEGATED}; add one"
    assert (said.code, says in plain) == (1, True), said.out
    assert "not asked, for a reason: 1 pairs" in plain
    assert "scale: lens None given values 3 why gradients 1 ✗" in plain
    assert "scale: negate False True values 2 1 gradients 1 ✗" in plain


@pytest.mark.slow
def test_an_exercise_without_options_has_no_branches(tiny_copy: Path, cli: Cli) -> None:
    request = ("validate", "scale", "--branches", "--mistake", "no_exception")
    said = cli(*request, "--course", tiny_copy)
    assert "  scale\n  no options, so no branches\n" in said.out


def test_reasons_decide_no_result(folder: Path) -> None:
    before = load_course(folder.parents[1]).hash
    (folder / "not_asked.toml").write_text('["scale(lens=given)"]\n"values" = "Not here."\n')
    assert load_course(folder.parents[1]).hash == before


@pytest.mark.parametrize("name", ["multi_head_attention", "rotary_embedding", "masked_softmax"])
def test_the_table_fits_a_terminal(course: Course, name: str) -> None:
    lines = [*watch_calls(course, course[name], 1).lines(load_reasons(course[name]))]
    assert max(map(len, lines)) <= 80
