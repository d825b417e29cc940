"""`grader import` makes exercises of a marked notebook that load, and loses nothing."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commandline import Cli
from marked_notebooks import (
    EXAMPLES,
    MAKERS,
    SQUARES,
    answer,
    checks,
    code,
    one_nbgrader,
    one_otter,
    review,
    text,
    validated,
    written,
)

from grader.course.course import Course, load_course
from grader.course.stubs import make_stub

pytestmark = pytest.mark.in_turn


@pytest.mark.parametrize("format_", MAKERS)
def test_the_examples_are_what_the_tools_write(format_: str, tmp_path: Path) -> None:
    made = MAKERS[format_](tmp_path / "made.ipynb")
    assert (EXAMPLES / f"{format_}.ipynb").read_text("utf-8") == made.read_text("utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("format_", MAKERS)
def test_references_pass_the_tests_that_came_with_them(
    format_: str, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    course, mine = tmp_path / "course", tmp_path / "mine"
    assert cli("import", format_, EXAMPLES / f"{format_}.ipynb", "--course", course).code == 0
    review(course)
    problems = validated(cli, course)
    assert any("TODO" in line for line in problems)
    assert [line for line in problems if "fails" in line and "TODO" not in line] == []

    assert cli("build", "--course", course).code == 0
    assert cli("init", mine, "--course", course).code == 0
    monkeypatch.chdir(mine)
    assert cli("check").code == 1  # nothing is written yet
    for name in load_course(course).names:
        solution = (course / "reference" / name / "solution.py").read_text()
        (mine / "exercises" / f"{name}.py").write_text(solution)
    said = cli("check")
    assert said.code == 0, said.out


@pytest.mark.slow
def test_a_wrong_answer_fails_the_tests_that_came_along(
    cli: Cli, tmp_path: Path, imported: Callable[..., Course]
) -> None:
    hidden = "### BEGIN HIDDEN TESTS\nassert squares(4)[3] == 9\n### END HIDDEN TESTS"
    course = imported("nbgrader", *one_nbgrader("assert squares(2) == [0, 1]", hidden))
    review(course.root)
    file = tmp_path / "squares.py"
    file.write_text("def squares(n):\n    return [i if i < 3 else 0 for i in range(n)]\n")
    said = cli("check", file, "--course", course.root)
    assert "1 / 2" in said.out
    assert "the answer of squares is not right" in said.out  # and not what is right
    file.write_text("def squares(n):\n    return []\n")
    assert "this does not hold: squares(2) == [0, 1]" in cli(
        "check", file, "--course", course.root
    ).out.replace("\n    ", " ")


def test_questions_become_exercises_in_the_order_of_the_notebook(cli: Cli, tiny_copy: Path) -> None:
    said = cli("import", "nbgrader", EXAMPLES / "nbgrader.ipynb", "--course", tiny_copy)
    course = load_course(tiny_copy)
    assert course.names == ("scale", "stable_softmax", "attention", "scale_layer")
    assert course["attention"].requires == ("stable_softmax",)
    assert "from stable_softmax import stable_softmax\n" in course["attention"].read("solution.py")
    assert [course[name].points for name in course.names[1:]] == [6, 4, 2]
    assert "points are whole numbers here: all are multiplied by 2" in said.out
    assert course["stable_softmax"].title == "Part A: stable softmax"
    assert "grader validate stable_softmax attention scale_layer" in said.out


def test_what_is_left_out_is_told(cli: Cli, tmp_path: Path) -> None:
    said = cli("import", "otter", EXAMPLES / "otter.ipynb", "--course", tmp_path)
    assert "`q4`: it is graded by hand" in said.out
    assert "text after the last question: You are done!" in said.out
    assert "`first = causal_weights(torch.zeros(2, 2))[0]`: it is in no function" in said.out
    said = cli("import", "nbgrader", EXAMPLES / "nbgrader.ipynb", "--course", tmp_path / "more")
    assert "`why`, 2 points: it is graded by hand" in said.out
    assert "cell 7, `stable_softmax(X)`" in said.out


def test_a_solution_stands_between_the_marks_and_the_rest_is_given(
    imported: Callable[..., Course],
) -> None:
    solution = (
        "LIMIT = 9\n\ndef squares(n):\n    n = min(n, LIMIT)\n    ### BEGIN SOLUTION\n"
        "    found = []\n    for i in range(n):\n        found.append(square(i))\n"
        "    return found\n    ### END SOLUTION\n"
    )
    before = "import torch\n\ndef square(x):\n    return x * x\n\nunused = 3"
    course = imported("nbgrader", *one_nbgrader("assert 1", before=before, solution=solution))
    stub = make_stub(course["squares"])
    assert "n = min(n, LIMIT)\n    raise NotImplementedError" in stub
    assert "def square(x):\n    return x * x\n" in stub
    assert "found" not in stub
    assert "unused" not in stub
    assert "import" not in course["squares"].read("solution.py")


def test_an_answer_without_marks_leaves_signatures_and_docstrings(
    imported: Callable[..., Course],
) -> None:
    solution = (
        "class Counter:\n    '''Counts.'''\n    START = 0\n    def __init__(self): self.n = 0\n"
        "    def up(self):\n        '''Return one more.'''\n        self.n += 1\n"
        "        return self.n\n"
    )
    course = imported("nbgrader", *one_nbgrader(solution=solution))
    stub = make_stub(course["squares"])
    assert course["squares"].implements == ("Counter",)
    assert (
        "def up(self):\n        '''Return one more.'''\n        raise NotImplementedError" in stub
    )
    assert "def __init__(self):\n        raise NotImplementedError" in stub
    assert "START = 0" in stub
    assert "self.n" not in stub


def test_a_marked_method_of_one_line_keeps_its_signature(imported: Callable[..., Course]) -> None:
    method = "    ### BEGIN SOLUTION\n    def up(self): return 1  # more\n    ### END SOLUTION\n"
    solution = f"class Counter:\n    START = 0\n{method}    def down(self): return START\n"
    course = imported("nbgrader", *one_nbgrader(solution=solution))
    stub = make_stub(course["squares"])
    assert "    def up(self):\n        raise NotImplementedError" in stub
    assert "    def down(self):\n        return START\n" in stub
    assert "# more" not in stub


@pytest.mark.parametrize(
    "region",
    [
        "    n = 2 * n # SOLUTION NO PROMPT\n    return (n + # SOLUTION\n            1)\n",
        "    # BEGIN SOLUTION NO PROMPT\n    n = 2 * n\n    return (n + 1)\n    # END SOLUTION\n",
        "    # BEGIN IGNORE\n    n = 7\n    # END IGNORE\n    return 2 * n + 1 # SOLUTION\n",
        "    return 2 * n + 1 # SOLUTION\n    ''' # BEGIN PROMPT\n    pass\n    '''; # END PROMPT",
    ],
)
def test_each_way_of_otter_to_mark_a_solution(region: str, imported: Callable[..., Course]) -> None:
    course = imported("otter", *one_otter(solution=f"def odd(n):\n    seven = 7\n{region}"))
    stub = make_stub(course["squares"])
    assert "    seven = 7\n    raise NotImplementedError" in stub
    assert stub.count("NotImplementedError") == 1
    assert " n" not in stub.partition("raise")[2].partition(")")[2]
    found: dict[str, Any] = {}
    exec(course["squares"].read("solution.py"), found)
    assert found["odd"](3) == 7


@pytest.mark.parametrize(
    ("case", "becomes"),
    [
        ("assert squares(1) == [0], 'zero'", "expect(student.squares(1) == [0], 'zero')"),
        ("assert squares(1)", 'expect(student.squares(1), "this does not hold: squares(1)")'),
        ("assert torch.allclose(squares(x), x)", "assert_close(student.squares(x), x)"),
        (
            "expected = x\nassert torch.allclose(expected, squares(x), atol=1e-3)",
            "assert_close(student.squares(x), expected, atol=1e-3)",
        ),
        (
            "torch.testing.assert_close(squares(x), x, rtol=0, atol=1)",
            "assert_close(student.squares(x), x, rtol=0, atol=1)",
        ),
        (
            "assert torch.allclose(squares(x), x), 'no'",
            "expect(torch.allclose(student.squares(x), x), 'no')",
        ),
        ("assert_equal(squares(1), [0], 'one')", "expect(student.squares(1) == [0], 'one')"),
        (
            "assert_raises(ValueError, squares, -1)",
            'with raises(student, "ValueError"):\n        student.squares(-1)\n',
        ),
        (
            "import pytest\nwith pytest.raises((ValueError, TypeError)):\n    squares(-1)",
            'with raises(student, "ValueError", "TypeError"):\n        student.squares(-1)\n',
        ),
        (
            "try:\n    squares(-1)  # too few\nexcept ValueError:\n    pass\n"
            "else:\n    raise AssertionError()",
            'with raises(student, "ValueError"):\n        student.squares(-1)\n',
        ),
        (
            "try:\n    squares(-1)\n    assert False, 'no'\nexcept ValueError as error:\n    pass",
            'with raises(student, "ValueError"):\n        student.squares(-1)\n',
        ),
        (
            "torch.manual_seed(3)\nsquares(2)",
            "torch.manual_seed(3)\n    manual_seed(student, 3)\n    student.squares(2)",
        ),
        (
            "for n in (1, 2):\n    assert len(squares(n)) == n, f'{squares(n)} is odd'",
            "expect(len(student.squares(n)) == n, f'{student.squares(n)} is odd')",
        ),
        ("assert squares(n=LENGTH)", "student.squares(n=LENGTH)"),
    ],
)
def test_an_assert_becomes_a_check_in_the_form_of_the_suites(
    case: str, becomes: str, imported: Callable[..., Course]
) -> None:
    before = "import torch\nfrom nose.tools import assert_equal\nx = torch.ones(2)\nLENGTH = 3"
    course = imported("nbgrader", *one_nbgrader(case, before=before))
    for file in ("test_public.py", "test_hidden.py"):
        suite = course["squares"].read(file)
        assert becomes in suite
        assert "nose" not in suite
        assert ("\nLENGTH = 3\n" in suite) == ("LENGTH" in case)
        assert ("    x = torch.ones(2)\n" in suite) == ("x)" in case or "x," in case)


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ("assert squares(len(np.ones(3)))", "students' code takes and gives tensors"),
        ("kept = squares\ndel squares", "it gives `squares` another value"),
        ("assert squares.__doc__", "it looks into `squares`"),
        ("assert squares(unheard_of)", "it uses `unheard_of`, which is no function or class"),
        ("assert nine == 81", "it uses `nine`, which is no function or class"),
        ("assert squares(2) == [0,", "it is no valid Python"),
        ("%timeit squares(2)", "it uses a command of IPython"),
        ("assert 1 + 1 == 2", "it calls nothing that students write"),
        ("try:\n    squares(1)\nexcept ValueError:\n    print('oh')", "it catches an exception"),
        ("### AUTOTEST squares(2)", "nbgrader makes its tests of a comment"),
        ("import no_such_module\nassert squares(1)", "`import no_such_module` finds nothing here"),
    ],
)
def test_what_cannot_be_a_test_is_kept_as_a_comment_to_do(
    case: str, reason: str, imported: Callable[..., Course]
) -> None:
    solution = f"{SQUARES}\n\nnine = squares(10)[9]"
    before = "import numpy as np"
    course = imported("nbgrader", *one_nbgrader(case, before=before, solution=solution))
    suite = course["squares"].read("test_hidden.py")
    line = next(line for line in suite.splitlines() if "TODO" in line and "case_1" in line)
    assert reason in line
    assert "def test_case" not in suite
    for original in case.splitlines():
        assert f"#   {original}" in suite or original.startswith("%")


def test_a_helper_of_a_test_may_catch_exceptions_of_its_own(
    imported: Callable[..., Course],
) -> None:
    helper = (
        "def number(x):\n    try:\n        return int(x)\n    except ValueError:\n        return 0"
    )
    course = imported("nbgrader", *one_nbgrader(f"{helper}\n\nassert squares(number('x')) == []"))
    suite = course["squares"].read("test_hidden.py")
    assert "            return int(x)\n        except ValueError:" in suite
    assert "expect(student.squares(number('x')) == []," in suite


def test_a_test_keeps_its_comments_and_strings(imported: Callable[..., Course]) -> None:
    loop = "for n in (1, 2):\n    # each size\n    assert squares(n) != [\n"
    case = f"{loop}        'é',  # no\n    ]  # done"
    course = imported("nbgrader", *one_nbgrader(f"{case}\nassert squares(len('''\na\n'''))"))
    suite = course["squares"].read("test_hidden.py")
    assert (
        "    for n in (1, 2):\n        # each size\n        expect(student.squares(n) != [\n"
        in suite
    )
    assert "            'é',  # no\n" in suite
    assert "  # done\n" in suite
    assert "expect(student.squares(len('''\na\n'''))," in suite


def test_students_are_shown_no_hidden_test(imported: Callable[..., Course]) -> None:
    case = "assert squares(1) == [0]\n### BEGIN HIDDEN TESTS\nassert squares(3)[2] == 4\n"
    course = imported("nbgrader", *one_nbgrader(f"{case}### END HIDDEN TESTS\nassert squares(2)"))
    public, hidden = (course["squares"].read(f"test_{kind}.py") for kind in ("public", "hidden"))
    assert "[2] == 4" in hidden
    assert "[2] == 4" not in public
    assert "squares(2)" in public
    assert 'visible("after_due")' in hidden
    assert "TODO: students can read each of these tests" not in hidden


@pytest.mark.parametrize(
    ("settings", "cases", "points"),
    [
        ("points: 3", ["", "", ""], [1, 1, 1]),
        ("points: 2", ["points: 1.5", ""], [3, 1]),
        ("points:\n    each: 2", ["", ""], [2, 2]),
        ("points:\n    - 0\n    - 1", ["", ""], [0, 1]),
        ("manual: false", ["points: 2", ""], [2, 0]),
        ("manual: false", ["", "", ""], [1, 1, 1]),
    ],
)
def test_points_are_those_of_otter_in_whole_numbers(
    settings: str, cases: list[str], points: list[int], imported: Callable[..., Course]
) -> None:
    config = '""" # BEGIN TEST CONFIG\n{}\n""" # END TEST CONFIG\nsquares(1)'
    made = [code(config.format(case) if case else "squares(1)", "[0]") for case in cases]
    course = imported("otter", *one_otter(*made, settings=f"name: squares\n{settings}"))
    assert course["squares"].points == sum(points)
    for file in ("test_public.py", "test_hidden.py"):
        found = course["squares"].read(file).split("points(")[1:]
        assert [int(each.partition(")")[0]) for each in found] == points


@pytest.mark.parametrize(
    ("source", "gives", "becomes"),
    [
        ("squares(2)", "[0, 1]", "expect(student.squares(2) == [0, 1], "),
        ("squares(2) or 3", "[0, 1]", "expect((student.squares(2) or 3) == [0, 1], "),
        ("x = 2\nlen(squares(x)) == x", "True", "x = 2\n    expect(len(student.squares(x)) == x, "),
        ("squares(2)", "tensor([0., 1.])", "torch.tensor([0., 1.]), atol=1e-4, rtol=0)"),
        ("squares(2)", "<object at 0x7f>", "# TODO: write the test of cell 8 (1 point): what it"),
        ("assert squares(1) == [0]", "", "expect(student.squares(1) == [0], "),
    ],
)
def test_what_the_notebook_shows_is_what_otters_tests_expect(
    source: str, gives: str, becomes: str, imported: Callable[..., Course]
) -> None:
    course = imported("otter", code("import torch"), *one_otter(code(source, gives)))
    assert becomes in course["squares"].read("test_hidden.py")


def test_a_notebook_that_was_not_run_says_so_in_its_tests(imported: Callable[..., Course]) -> None:
    course = imported("otter", *one_otter(code("squares(2)", run=False)))
    suite = course["squares"].read("test_hidden.py")
    assert "the notebook does not show what it gives" in suite


def test_the_older_format_of_otter_is_read(imported: Callable[..., Course]) -> None:
    course = imported(
        "otter",
        text("```\nBEGIN ASSIGNMENT\ninit_cell: false\n```"),
        text("**Question 1.** Write it.\n\n```\nBEGIN QUESTION\nname: q1\npoints: 2\n```"),
        code("def double(x):\n    return 2 * x # SOLUTION"),
        code("## Test ##\ndouble(3)", "6"),
        code("# HIDDEN TEST\ndouble(5)", "10"),
        text("Read on."),
    )
    assert course.names == ("q1",)
    assert course["q1"].points == 2
    assert course["q1"].read("statement.md").endswith("\n\nQuestion 1. Write it.\n")
    assert "double(5)" not in course["q1"].read("test_public.py")
    assert "student.double(5) == 10" in course["q1"].read("test_hidden.py")


def test_a_statement_is_plain_text_in_short_lines(imported: Callable[..., Course]) -> None:
    prose = (
        "# Intro\n\n"
        + "Many **bold words** that make a line much too long for an editor. " * 3
        + "\n\n## Softmax [2 points]\n\nThe formula $a_1*b_1*c_1$:\n\n$$\n\\frac{**a**}{b}\n$$\n\n"
        "* one<br>\n* two ![a picture](x.png)\n\n```python\ns = '''x'''\nt = \"\"\"**y**\"\"\"\n"
        "```\n"
        "<!-- a note -->\n| a | b |\n|---|---|\n\nSee [here](https://example.org)."
    )
    course = imported("nbgrader", text(prose), answer(SQUARES, "squares"))
    statement = course["squares"].read("statement.md")
    assert statement.startswith("# Softmax\n\nIntro\n\nMany bold words that")
    assert max(map(len, statement.splitlines())) <= 79
    assert "The formula $a_1*b_1*c_1$:\n\n$$\n\\frac{**a**}{b}\n$$\n" in statement
    assert "  - one\n  - two (picture: a picture)\n" in statement
    assert "    s = '''x'''\n    t = '''**y**'''\n" in statement
    assert "| a | b |\n|---|---|\n\nSee here (https://example.org).\n" in statement
    assert "note" not in statement
    assert make_stub(course["squares"]).startswith('r"""# Softmax')


def test_one_question_is_taken_under_a_name_of_its_own(cli: Cli, tmp_path: Path) -> None:
    arguments = ("import", "otter", EXAMPLES / "otter.ipynb", "--course", tmp_path)
    assert cli(*arguments, "--only", "q1", "--name", "causal_mask").code == 0
    assert load_course(tmp_path).names == ("causal_mask",)


@pytest.mark.slow
def test_a_question_without_tests_has_a_list_of_what_to_do(
    cli: Cli, imported: Callable[..., Course]
) -> None:
    course = imported("nbgrader", *one_nbgrader("assert missing"))
    review(course.root)
    problems = validated(cli, course.root, "squares")
    assert re.search(
        r"test_public.py \(line \d+\).*test_hidden.py \(lines \d+, \d+\)", problems[-1]
    )
    hidden = course["squares"].read("test_hidden.py")
    assert "write the first test" in hidden
    assert "it uses `missing`" in hidden
    assert any("worth 0 points, exercise.toml says 1" in line for line in problems)


@pytest.mark.slow
def test_the_page_for_users_of_other_graders_shows_tests_that_work(
    cli: Cli, tiny_copy: Path
) -> None:
    page = (EXAMPLES.parent.parent / "docs" / "from-other-graders.md").read_text("utf-8")
    shown = page.split("```python\n")[2].partition("```")[0]
    cases = shown.replace("test_doubles(", "test_case(one, ").replace("2.0, 2.0", "one, 4.0")
    both = "@pytest.fixture\ndef one():\n    return 1.0\n\n" + cases
    each = '@pytest.mark.parametrize("n", [1, 2])\n' + shown.replace("doubles(", "each(n, ")
    folder = tiny_copy / "reference" / "scale"
    imports = "import pytest\nfrom grader.testing import assert_close\n"
    (folder / "test_hidden.py").write_text("\n\n".join([imports, shown, both, each]))
    said = cli("check", folder / "solution.py", "--course", tiny_copy)
    assert (said.code, "8 / 8" in said.out) == (0, True), said.out


def test_names_and_settings_of_strangers_stay_in_their_place(
    imported: Callable[..., Course],
) -> None:
    name = "case\nimport os\u2028raise SystemExit"
    course = imported(
        "nbgrader", answer(SQUARES, 'a"\n\nb'), checks("assert squares(1), '\x0c\x00'", name, 1)
    )
    exercise = course["a_b"]
    assert "def test_case_import_os_raise_systemexit(student):" in exercise.read("test_hidden.py")
    assert "\x00" not in exercise.read("test_hidden.py")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("unit", "code"),
    [("\n", 0), ("x = x\n", 0), ('""" # BEGIN PROMPT\n', 2), ("# BEGIN IGNORE\n", 2)],
)
def test_a_long_cell_is_read_in_linear_time(unit: str, code: int, cli: Cli, tmp_path: Path) -> None:
    long = unit * (60_000 // len(unit))
    cells = [*one_otter(solution=f"{SQUARES}\n\nTEXT = '''\n{long}'''"), text(long)]
    path = written(tmp_path / "notebook.ipynb", *cells)
    started = time.process_time()
    assert cli("import", "otter", path, "--course", tmp_path / "course").code == code
    assert time.process_time() - started < 5


def test_old_notebooks_of_jupyter_are_read(cli: Cli, tmp_path: Path) -> None:
    marks = '"metadata": {"nbgrader": {"solution": true, "grade": false, "grade_id": "f"}}'
    cell = f'{{"cell_type": "code", "input": ["def f():\\n", "    return 1"], {marks}}}'
    path = tmp_path / "old.ipynb"
    path.write_text(f'{{"nbformat": 3, "worksheets": [{{"cells": [{cell}]}}]}}')
    assert cli("import", "nbgrader", path, "--course", tmp_path).code == 0
    assert load_course(tmp_path)["f"].implements == ("f",)
