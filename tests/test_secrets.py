"""Arguments, a suite's own tensors and secret inputs are out of a student's reach."""

from __future__ import annotations

from pathlib import Path

import pytest
from classroom import hand_in, report_of
from commandline import Cli, Grade

from grader.course.course import Course


@pytest.mark.slow
def test_writing_into_any_argument_fails_the_check(course: Course, grade: Grade) -> None:
    text = course["masked_softmax"].read("solution.py")
    name = "def masked_softmax("
    assert name in text
    writes = text.replace(name, "def honest(") + (
        "\n\ndef masked_softmax(X, valid_lens):\n"
        "    weights = honest(X, valid_lens)\n"
        "    if valid_lens is not None: valid_lens.fill_(1)\n"
        "    return weights\n"
    )
    (result,) = grade(course, {"masked_softmax": writes}, "masked_softmax").exercises
    outcomes = {test.name: test for test in result.tests}
    failed = outcomes["test_views_and_arguments"]
    assert failed.message == "your code wrote into its argument valid_lens; work on a new tensor"


@pytest.fixture
def suite(tiny_copy: Path) -> Path:
    return tiny_copy / "reference" / "scale" / "test_hidden.py"


@pytest.mark.slow
def test_a_tensor_at_module_level_is_the_same_for_every_student(
    cli: Cli, suite: Path, tiny_copy: Path, tiny_solution: str, tmp_path: Path
) -> None:
    suite.write_text(
        suite.read_text()
        + '''

import torch
from grader.testing import sharing
X, MORE = torch.ones(3), {"list": [1]}

@pytest.mark.points(0)
def test_shared(student):
    """A tensor of the suite."""
    assert_close(X, torch.ones(3), "the suite's own tensor")
    assert_close(MORE, {"list": [1]}, "the suite's own dict")
    MORE["list"].append(2)
    with sharing(student, X):
        student.scale(X, 1.0)
'''
    )
    cheat = tiny_solution.replace("    if factor < 0:", "    x.zero_()\n    if factor < 0:")
    texts = {f"s{n:03}/scale.py": cheat if n == 2 else tiny_solution for n in range(1, 6)}
    out = tmp_path / "out"
    cli("batch", hand_in(tmp_path / "class", texts), "--out", out, "--course", tiny_copy)
    for name in ("s001", "s003", "s004", "s005"):
        tests = report_of(out, name)["exercises"][0]["tests"]
        assert {t["message"] for t in tests if t["outcome"] != "passed"} == set()


@pytest.mark.slow
def test_validate_refuses_tensors_at_module_level(cli: Cli, suite: Path, tiny_copy: Path) -> None:
    suite.write_text(suite.read_text() + "\nimport torch\nCASES = [(1, torch.ones(2))]\n")
    said = cli("validate", "--course", tiny_copy)
    assert said.code == 1
    assert "test_hidden.py: keeps a tensor or a module at module level (CASES)" in said.out


@pytest.mark.slow
def test_no_shown_test_repeats_what_a_secret_one_sent(
    cli: Cli, suite: Path, tiny_copy: Path, tiny_solution: str, tmp_path: Path
) -> None:
    text = suite.read_text()
    secret = '''@pytest.mark.visible("never")
@pytest.mark.points(0)
def test_secret(student):
    """A secret."""
    import torch
    student.scale(torch.full((2,), 47114711.0), 2.0)


'''
    first = "@pytest.mark.points(2)\ndef test_twice"
    suite.write_text(text.replace(first, secret + first))
    spy = tiny_solution.replace(
        "    if factor < 0:",
        "    SEEN.append(x.flatten().tolist())\n    print(SEEN)\n"
        "    if len(x.shape) == 2: raise LookupError(SEEN)\n    if factor < 0:",
    ).replace("def scale(", "SEEN = []\n\n\ndef scale(")
    out = tmp_path / "out"
    texts = {"s001/scale.py": tiny_solution, "s002/scale.py": spy, "s003/scale.py": tiny_solution}
    cli("batch", hand_in(tmp_path / "class", texts), "--out", out, "--course", tiny_copy)
    pages = [path.read_text() for path in (out / "reports").glob("s002*")]
    assert pages
    assert not [page for page in pages if "47114711" in page]
    names = [test["name"] for test in report_of(out, "s001")["exercises"][0]["tests"]]
    assert names.index("hidden") == 1


@pytest.mark.slow
def test_a_comparison_of_two_answers_accepts_only_tensors(course: Course, grade: Grade) -> None:
    text = course["dictionary_lookup"].read("solution.py")
    for answer in ("('x', 'x')", "(1.0, 1.0)", "(None, None)", "torch.full((2, 3, 6), torch.nan)"):
        words = text + f"\n\ndef attention(Q, K, V, temp=1.0): return {answer}\n"
        (result,) = grade(course, {"dictionary_lookup": words}, "dictionary_lookup").exercises
        outcomes = {test.name: test.outcome for test in result.tests}
        for name in ("test_temp", "test_leading_axes_and_views"):  # they accept the code's own
            assert outcomes[name] != "passed", (name, answer)
