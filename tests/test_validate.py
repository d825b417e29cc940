"""`grader validate` proves the content both ways, and every proof can fail."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from commandline import Cli
from msgspec import structs

from grader.commands.proof import Proof
from grader.commands.proving import Prover
from grader.commands.validate import defined_twice, table, validate_course, whole_course
from grader.course.course import Course, load_course
from grader.course.known_mistakes import edited, load_mistakes
from grader.sandbox.host.zygote import Zygote

pytestmark = pytest.mark.in_turn

ROOT = Path(__file__).parent.parent
EXERCISES = load_course(ROOT).exercises
TRAINED = [each.name for each in EXERCISES if each.training]
MISTAKES = {each.name: [fault.name for fault in load_mistakes(each)] for each in EXERCISES}
MIN_FAULTS = 20
AT_ONCE = 6  # mistakes, of an exercise that may have fifty in five forms each
PARTS = [(name, start) for name in MISTAKES for start in range(0, len(MISTAKES[name]), AT_ONCE)]

CASES = """

from grader.authors import Check, built, drawn, gradient, output, refused

test_cases = Check("Other calls come out right, too.", points=0)
test_cases.case("A factor of 3.", output("scale", drawn(3, 7), 3.0))
test_cases.case("A factor of 3, of rows of 5.", output("scale", drawn(3, 5), 3.0), hidden=True)
test_cases.case("A negative factor.", refused("scale", drawn(3, 7), -1.0), about="refusals")
test_cases.case("The gradient.", gradient(built("Scale", 7), drawn(3, 7)), about="gradient")
"""


@pytest.mark.night  # those with fifty mistakes take minutes, and those that train as well
@pytest.mark.parametrize("name", MISTAKES)
def test_the_course_is_proven(name: str, cli: Cli, users_cache: None) -> None:
    said = cli("validate", name)
    assert said.code == 0, said.out
    assert f"  {len(MISTAKES[name])}  " in said.out.splitlines()[-1]


@pytest.mark.slow
@pytest.mark.in_turn(share=len(PARTS) // 2)
@pytest.mark.parametrize(("name", "start"), [p for p in PARTS if p[0] not in TRAINED])
def test_some_mistakes_are_proven(name: str, start: int, cli: Cli) -> None:
    some = MISTAKES[name][start : start + AT_ONCE]
    said = cli("validate", name, *(part for each in some for part in ("--mistake", each)))
    assert said.code == 0, said.out
    assert f"  {len(some)}  " in said.out.splitlines()[-1]


@pytest.mark.parametrize("name", MISTAKES)
def test_each_exercise_has_many_mistakes_whose_texts_stand_in_it(name: str, course: Course) -> None:
    assert len(MISTAKES[name]) >= MIN_FAULTS
    solution = course[name].read("solution.py")
    for mistake in load_mistakes(course[name]):
        left = [form for form in mistake.programs() if edited(solution, form) is None]
        assert left == [], mistake.name


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        (["--mistake", "softmax"], "--mistake needs one exercise"),
        (["masked_softmax", "--mistake", "sofmax_over_queries"], "did you mean `softmax_over_"),
        (["masked_softmax", "--mistake", "zz"], "has no mistake `zz`; it has "),
    ],
)
def test_a_mistake_that_nobody_knows_is_said(cli: Cli, request_: list[str], says: str) -> None:
    said = cli("validate", *request_)
    assert (said.code, says in said.err) == (2, True), said.err


def test_the_course_adds_up(course: Course) -> None:
    assert whole_course(course) == []


@pytest.mark.slow
def test_the_tiny_course_is_proven_too(cli: Cli, tiny_copy: Path) -> None:
    cli("build", "--course", tiny_copy)
    said = cli("validate", "--course", tiny_copy)
    assert said.code == 0, said.out
    assert "✗" not in said.out


BREAKAGES = [
    ("solution.py", "raise ValueError", "raise TypeError", "solution.py: fails test_negative"),
    ("test_hidden.py", "@pytest.mark.points(3)", "@pytest.mark.points(4)", "are worth 9 points"),
    (
        "test_hidden.py",
        "@pytest.mark.points(3)",
        "@pytest.mark.points(0.5)",
        "test_hidden.py: test_module has the mark points(0.5); points are a whole number",
    ),
    (
        "test_hidden.py",
        "student.scale(x, 3.0), reference",
        "reference.scale(x, 3.0), reference",
        "test_hidden.py: the mistake factor_capped earns all points",
    ),
    (
        "test_hidden.py",
        "student.scale(x, 3.0), reference",
        "reference.scale(x, 3.0), reference",
        "test_hidden.py: the stub earns 2 points",
    ),
    (
        "test_hidden.py",
        "assert_written_by_hand(student, lambda: student.scale(x, 2.0))",
        "y = student.scale(x, 2.0)\n    assert_written_by_hand(student, lambda: y)",
        "test_hidden.py: on the stub a check that all others need fails",
    ),
    (
        "mistakes.toml",
        "if factor < 0:",
        "if factor < 1:",
        "no_exception: its text stands 0 times",
    ),
    (
        "test_hidden.py",
        'needs("test_written_by_hand")',
        'needs("test_writen_by_hand")',
        "needs test_writen_by_hand, which is not there; did you mean `test_written_by_hand`?",
    ),
    (
        "test_hidden.py",
        "@pytest.mark.points(0)\n",
        '@pytest.mark.points(0)\n@pytest.mark.needs("test_twice")\n',
        "test_hidden.py: these tests need one another: test_written_by_hand, test_twice, ",
    ),
    (
        "mistakes.toml",
        'edits = [["return x * self.weight", "return x * self.weight.detach()"]]',
        "edits = [" + 5 * '["x * self", "x + self"], ' + "]",
        "mistakes.toml: weight_ignored: 5 edits; at most 4 are allowed; make two mistakes of it",
    ),
    ("mistakes.toml", "min(factor, 2.0)", "(factor)", "the mistake factor_capped earns all points"),
    ("mistakes.toml", 'hint = "Use an operator."', 'hint = " "', "torch_multiplies: its `hint` is"),
    ("mistakes.toml", 'hint = "Use an operator."', "", "torch_multiplies: missing key `hint`"),
    ("exercise.toml", '"x times factor."', '" "', "exercise.toml: needs 3 hints, none empty"),
    ("exercise.toml", "points = 8", "points = 9", "the exercises add up to 9"),
    (
        "test_hidden.py",
        "    x = rng.randn(2, 3)\n    assert_close(student.scale(x, 3.0)",
        "    import time\n    x = rng.randn(2, 3)\n"
        "    assert_close(student.scale(x, 3.0 + time.time() % 1), reference.scale(x, 3.0), 'y')\n"
        "    assert_close(student.scale(x, 3.0)",
        "solution.py: fails test_thrice",
    ),
    ("statement.md", "x times factor", "x times the factor", "exercises/scale.py: not what"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("file", "old", "new", "problem"), BREAKAGES)
def test_a_break_in_the_content_is_named_by_file(
    cli: Cli, tiny_copy: Path, file: str, old: str, new: str, problem: str
) -> None:
    cli("build", "--course", tiny_copy)
    path = tiny_copy / "reference" / "scale" / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    said = cli("validate", "--course", tiny_copy)
    assert said.code != 0
    assert problem in said.out + said.err


@pytest.mark.slow
def test_an_example_that_does_not_run_is_named(cli: Cli, tiny_copy: Path) -> None:
    (tiny_copy / "reference" / "scale" / "example.py").write_text("scale(2.0)\n")
    said = cli("validate", "--course", tiny_copy, "scale")
    assert (said.code, "example.py: raises TypeError on solution.py" in said.out) == (1, True)


@pytest.mark.slow
def test_a_stand_in_that_is_a_solution_is_a_problem(
    cli: Cli, tiny_copy: Path, tiny_solution: str
) -> None:
    path = tiny_copy / "reference" / "scale" / "stand_in.py"
    path.write_text(tiny_solution)
    said = cli("validate", "--course", tiny_copy, "scale")
    earns = "reference/scale/stand_in.py: handed in as a solution, it earns 8 of 8 points"
    assert (said.code, earns in said.out) == (1, True)
    path.write_text(tiny_solution.replace("return x * factor", "return torch.multiply(x, factor)"))
    assert "stand_in.py" not in cli("validate", "--course", tiny_copy, "scale").out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("torch.full((3,), 2.0)", "torch.full((3,), 2.5)", "solution.py: fails test_twice of test"),
        ("points(8)", "points(7)", "test_public.py: its tests are worth 7 points"),
    ],
)
def test_a_break_in_the_public_suite_is_named(
    cli: Cli, tiny_copy: Path, old: str, new: str, problem: str
) -> None:
    path = tiny_copy / "reference" / "scale" / "test_public.py"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    cli("build", "--course", tiny_copy)
    said = cli("validate", "--course", tiny_copy)
    assert said.code == 1
    assert f"reference/scale/{problem}" in said.out


@pytest.mark.slow
def test_a_price_is_no_more_than_the_exercise_is_worth(cli: Cli, tiny_copy: Path) -> None:
    path = tiny_copy / "reference" / "scale" / "mistakes.toml"
    path.write_text(path.read_text().replace("[weight_ignored]", "[weight_ignored]\ncosts = 9"))
    cli("build", "--course", tiny_copy)
    said = cli("validate", "--course", tiny_copy)
    assert said.code == 1
    told = "weight_ignored: it costs 9 points, and the exercise is worth 8"
    assert told in " ".join(said.out.split())


@pytest.mark.slow
def test_edits_that_are_a_mistake_only_all_at_once_are_told_how_to_say_so(
    cli: Cli, tiny_copy: Path
) -> None:
    mistakes = tiny_copy / "reference" / "scale" / "mistakes.toml"
    capped = '["return x * factor", "return x * min(factor, 2.0)"]'
    right = '["if factor < 0", "if factor <= -1e-9"]'
    alone = f"edits = [{capped}]"
    assert alone in mistakes.read_text()
    mistakes.write_text(mistakes.read_text().replace(alone, f"edits = [{capped}, {right}]"))
    said = cli("validate", "scale", "--course", tiny_copy)
    assert (
        "factor_capped: in the form 'if factor <= -1e-9' it earns all points; `edits` means any of "
        "these edits, and here only some are made: if only all at once are the mistake, write them "
        "as one list in `forms`"
    ) in said.out
    mistakes.write_text(mistakes.read_text().replace("edits = [[", "forms = [[[", 1))
    mistakes.write_text(mistakes.read_text().replace('-1e-9"]]', '-1e-9"]]]', 1))
    assert "factor_capped" not in cli("validate", "scale", "--course", tiny_copy).out


@pytest.mark.slow
def test_every_form_of_a_fault_is_graded(cli: Cli, tiny_copy: Path) -> None:
    path = tiny_copy / "reference" / "scale" / "mistakes.toml"
    harmless = 'forms = [[["return x * factor", "return factor * x"]]]'
    path.write_text(path.read_text().replace("[factor_capped]", f"[factor_capped]\n{harmless}"))
    cli("build", "--course", tiny_copy)
    said = cli("validate", "--course", tiny_copy)
    assert said.code == 1
    told = " ".join(said.out.split())
    assert "factor_capped: in the form 'return factor * x' it earns all points" in told


@pytest.fixture
def proven(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The exercises that are proven from now on, in this process."""
    names: list[str] = []
    prove = Prover.prove

    def noted(prover: Prover) -> Proof:
        names.append(prover.exercise.name)
        return prove(prover)

    monkeypatch.setattr(Prover, "prove", noted)
    return names


@pytest.mark.slow
def test_a_proof_is_repeated_only_if_something_has_changed(
    cli: Cli, tiny_copy: Path, proven: list[str]
) -> None:
    def proves(*options: str) -> bool:
        proven.clear()
        cli("build", "--course", tiny_copy)
        said = cli("validate", "--course", tiny_copy, *options)
        assert (said.code, said.out.split()[-2:]) == (0, ["0", "0"]), said.out
        return proven == ["scale"]

    assert proves()
    assert not proves()
    assert proves("--seed", "9")
    assert proves("--again", "--seed", "9")
    statement = tiny_copy / "reference" / "scale" / "statement.md"
    statement.write_text(statement.read_text() + "\nMore.\n")
    assert proves()


@pytest.mark.slow
def test_what_has_a_problem_is_not_kept(cli: Cli, tiny_copy: Path, proven: list[str]) -> None:
    path = tiny_copy / "reference" / "scale" / "mistakes.toml"
    path.write_text(path.read_text().replace("min(factor, 2.0)", "(factor)"))
    first = cli("validate", "--course", tiny_copy)
    assert cli("validate", "--course", tiny_copy) == first
    assert (first.code, proven) == (1, ["scale", "scale"])


@pytest.mark.slow
def test_what_each_fault_costs_is_printed(cli: Cli, tiny_copy: Path) -> None:
    cli("build", "--course", tiny_copy)
    said = cli("validate", "--prices", "--course", tiny_copy)
    assert said.code == 0, said.out
    rows = [line.split() for line in said.out.splitlines()]
    assert ["mistake", "checks", "price", "points", "lost"] in rows
    assert ["factor_capped", "2", "3", "2"] in rows
    assert ["weight_ignored", "3", "3", "3"] in rows
    assert "factor_capped" not in cli("validate", "--course", tiny_copy).out


ONLY_ERRORS = """
[few_numbers]
costs = 1
edits = [["x.mean(dim=-1, keepdim=True)", "x[:, 3:4]", "x[:, [4]].expand(x.shape)"]]
says = "The fourth number is subtracted, not the mean."
hint = "How many numbers has the mean to ask?"
"""


@pytest.mark.slow
def test_a_mistake_that_no_report_names_because_it_raises_is_told(cli: Cli, tmp_path: Path) -> None:
    cli("new", "centre", "--course", tmp_path)
    folder = tmp_path / "reference" / "centre"
    with (folder / "mistakes.toml").open("a") as file:
        file.write(ONLY_ERRORS)
    suite = folder / "test_hidden.py"
    suite.write_text(suite.read_text().replace("drawn(3, 5)", "drawn(3, 4)").replace("12", "4"))
    request = ("validate", "centre", "--prices", "--mistake", "few_numbers", "--course", tmp_path)
    said = cli(*request)
    assert said.code == 1
    told = (
        "! reference/centre/mistakes.toml: few_numbers: in the form 'x[:, [4]].expand(x.shape)' "
        "its answers are errors, so no report names it and it costs 4, not 1; ask whether such "
        "a call works (works_as_well)"
    )
    assert told in said.out
    assert ["few_numbers", "4", "1", "4"] in [line.split() for line in said.out.splitlines()]
    asked = """
ask = works_as_well("centre", drawn(3, 5), drawn(3, 4))
test_values.case("Whether four numbers work.", ask)
"""
    suite.write_text(suite.read_text().replace("output\n", "output, works_as_well\n") + asked)
    said = cli(*request)
    assert "its answers are errors" not in said.out
    assert ["few_numbers", "4", "1", "1"] in [line.split() for line in said.out.splitlines()]


@pytest.mark.slow
def test_two_faults_that_behave_alike_cannot_be_told_apart(cli: Cli, tiny_copy: Path) -> None:
    folder = tiny_copy / "reference" / "scale"
    with (folder / "test_hidden.py").open("a") as file:
        file.write(CASES)
    cli("build", "--course", tiny_copy)
    alone = cli("validate", "--course", tiny_copy)
    assert "cannot distinguish" not in alone.out
    path = folder / "mistakes.toml"
    path.write_text(
        path.read_text()
        + "\n[capped_again]\n"
        + 'edits = [["return x * factor", "return min(factor, 2.0) * x"]]\nsays = "s"\nhint = "h"\n'
    )
    cli("build", "--course", tiny_copy)
    said = cli("validate", "--course", tiny_copy)
    assert said.code == 1
    assert "capped_again: the diagnosis cannot distinguish it from factor_capped" in said.out


@pytest.mark.slow
def test_runs_with_one_seed_that_differ_are_told(
    tiny_copy: Path, zygote: Zygote, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    """A suite that draws from elsewhere than `rng` cannot be replayed."""
    suite = tiny_copy / "reference" / "scale" / "test_hidden.py"
    text = suite.read_text().replace(
        "    x = rng.randn(2, 3)\n    assert_close(student.scale(x, 3.0)",
        "    import os\n    from grader.testing import expect\n"
        "    expect(os.urandom(8) == b'', os.urandom(8).hex())\n"
        "    x = rng.randn(2, 3)\n    assert_close(student.scale(x, 3.0)",
    )
    suite.write_text(text)
    cli("build", "--course", tiny_copy)
    said = cli("validate", "--course", tiny_copy)
    assert "test_hidden.py: two runs with one seed differ" in said.out


@pytest.mark.slow
def test_the_table_adds_up(tiny_copy: Path) -> None:
    proofs = validate_course(load_course(tiny_copy), ["scale"], 1)
    assert "total" in table(proofs)
    assert proofs[0].caught == proofs[0].faults == 4


@pytest.mark.parametrize("name", ["scale", "a_name_that_is_long"])
def test_the_columns_of_the_table_end_below_their_heads(tiny_course: Course, name: str) -> None:
    exercise = structs.replace(tiny_course["scale"], name=name)
    head, *rows = table([Proof(exercise, tests=4, faults=5, caught=5)]).splitlines()
    assert {len(row) for row in rows} == {len(head)}
    ends = [found.end() for found in re.finditer(r"needed cases|\w+", head)][1:]
    for row in rows:
        assert [found.end() for found in re.finditer(r" \d+(?!\S)", row)] == ends


def test_two_exercises_that_define_one_name_are_told_apart(tiny_copy: Path) -> None:
    reference = tiny_copy / "reference"
    shutil.copytree(reference / "scale", reference / "zoom")
    zoom = reference / "zoom" / "solution.py"
    zoom.write_text(zoom.read_text().replace("def scale", "def zoom"))
    (problem,) = defined_twice(load_course(tiny_copy))
    assert problem.startswith("reference/zoom/solution.py: defines `Scale`, as scale does")


@pytest.mark.parametrize("command", ["validate", "build", "batch"])
def test_a_solution_that_is_no_python_is_named(
    cli: Cli, tiny_copy: Path, tmp_path: Path, command: str
) -> None:
    path = tiny_copy / "reference" / "scale" / "solution.py"
    path.write_text(path.read_text().replace("return x * factor", "return x * (factor"))
    (tmp_path / "class" / "s001").mkdir(parents=True)
    (tmp_path / "class" / "s001" / "scale.py").write_text("")
    more = [tmp_path / "class", "--out", tmp_path / "out"] if command == "batch" else []
    said = cli(command, *more, "--course", tiny_copy)
    assert said.code == 2
    says = r"scale/solution\.py(:\d+: this is not valid Python| cannot be loaded: SyntaxError)"
    assert re.search(says, said.err), said.err


@pytest.mark.slow
def test_a_fault_that_makes_no_python_is_named(cli: Cli, tiny_copy: Path) -> None:
    path = tiny_copy / "reference" / "scale" / "mistakes.toml"
    path.write_text(path.read_text().replace("min(factor, 2.0)", "min(factor, 2.0"))
    said = cli("validate", "--course", tiny_copy)
    assert said.code == 1
    assert "the solution is no valid Python" in said.out
