"""A test of a suite reads as if the student's code were local, and all of it runs in a worker."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from commandline import Grade
from remote_code import doubles, student_at

from grader.course.course import load_course
from grader.errors import Mismatch, StudentFailure
from grader.sandbox.host.connection import WorkerConnection
from grader.sandbox.host.worker import Worker
from grader.sandbox.host.zygote import Zygote
from grader.testing import manual_seed, raises, sharing

# --- values and autograd --------------------------------------------------------------------------


def test_structures_cross_both_ways(student: Any) -> None:
    a, b = doubles(2), doubles(2)
    result = student.both((a, b), named={"b": b})
    assert torch.equal(result["sum"], a + b)
    assert torch.equal(result[7][0], b)
    assert result[7][1] is None
    assert student.keyword(5, b=2) == 3


def test_backward_fills_local_inputs_and_the_workers_parameters(student: Any) -> None:
    model = student.Model(3, 2).to(torch.float64).eval()
    x = doubles(4, 3).requires_grad_()
    model(x).sum().backward()
    parameters = dict(model.named_parameters())
    assert x.grad is not None
    assert torch.allclose(x.grad, parameters["linear.weight"].sum(dim=0).expand(4, 3))
    assert torch.allclose(parameters["linear.weight"].grad, x.detach().sum(dim=0).expand(2, 3))
    assert torch.allclose(parameters["linear.bias"].grad, torch.full((2,), 4.0).double())
    model.zero_grad()
    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.slow
def test_gradcheck_passes_for_right_gradients_and_fails_for_wrong_ones(student: Any) -> None:
    x = doubles(2, 3).requires_grad_()
    assert torch.autograd.gradcheck(student.softmax, (x,))
    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        torch.autograd.gradcheck(student.broken_softmax, (x,))


def test_a_graph_that_was_cut_is_cut_here_too(student: Any) -> None:
    assert not student.cut(doubles(2).requires_grad_()).requires_grad


def test_grad_mode_crosses(student: Any) -> None:
    assert student.grad_mode() is True
    with torch.no_grad():
        assert student.grad_mode() is False
        assert not student.softmax(doubles(2).requires_grad_()).requires_grad


def test_two_calls_join_in_one_graph(student: Any) -> None:
    x = doubles(2, 3).requires_grad_()
    (student.softmax(student.softmax(x) * 2) ** 2).sum().backward()
    y = x.detach().clone().requires_grad_()
    (torch.softmax(torch.softmax(y, -1) * 2, -1) ** 2).sum().backward()
    assert torch.allclose(x.grad, y.grad)


# --- arguments, modules and seeds -----------------------------------------------------------------


@pytest.mark.parametrize("function", ["double_in_place", "double_data"])
def test_an_argument_that_was_written_into_is_changed_here_too(student: Any, function: str) -> None:
    base = doubles(2, 3)
    x, before = base.T, base.T.clone()
    getattr(student, function)(x)
    assert torch.equal(x, before)
    with pytest.raises(Mismatch, match="wrote into its tensor argument"), sharing(student):
        getattr(student, function)(x)
    assert torch.equal(x, before)
    with sharing(student, x):
        getattr(student, function)(x)
    assert torch.equal(x, before * 2)
    assert torch.equal(base, before.T * 2)


@pytest.mark.parametrize("function", ["grow", "replace", "reorder", "nest"])
def test_a_list_or_dict_that_was_changed_is_told_where_writes_are_looked_for(
    student: Any, function: str
) -> None:
    entries = {1: [2.0, float("nan")], 3: [True, None]}
    getattr(student, function)(entries)
    assert list(entries) == [1, 3]
    assert entries[3] == [True, None]
    with pytest.raises(Mismatch, match="changed the dict"), sharing(student):
        getattr(student, function)(entries)


def test_a_list_or_dict_that_was_left_alone_is_not_told(student: Any) -> None:
    entries = {1: [2.0, float("nan"), 0, (-0.0, "x")], "a": {"b": doubles(2)}, None: []}
    with sharing(student):
        assert student.size(entries) == 3
        assert student.size(["a", [1]]) == 2


def test_an_argument_that_was_reshaped_is_refused(student: Any) -> None:
    x = doubles(2)
    with pytest.raises(Mismatch, match="changed the shape"), sharing(student, x):
        student.reshape(x)
    assert x.shape == (2,)


def test_views_and_leaves_are_the_same_in_the_worker(student: Any) -> None:
    assert student.strides(doubles(2, 3).T) == [1, 3]
    assert student.is_leaf(doubles(2)) == (True, False)
    assert student.is_leaf(doubles(2).requires_grad_()) == (True, True)
    assert student.is_leaf(doubles(2).requires_grad_() * 1) == (False, True)


def test_a_module_has_the_interface_of_a_module(student: Any) -> None:
    model = student.Model(3, 2).to(torch.float64)
    assert {name for name, _ in model.named_parameters()} == {"linear.weight", "linear.bias"}
    assert {name for name, _ in model.named_buffers()} == {"mask"}
    assert model.size == (3, 2)
    state = model.state_dict()
    state["linear.bias"] = torch.zeros(2, dtype=torch.float64)
    state["linear.weight"] = torch.ones(2, 3, dtype=torch.float64)
    model.load_state_dict(state)
    x = torch.ones(4, 3, dtype=torch.float64)
    assert torch.equal(model.eval()(x), torch.full((4, 2), 3.0).double())
    assert set(model.train()(torch.ones(50, 3).double()).flatten().tolist()) == {0.0, 6.0}
    model.load_state_dict({})
    with pytest.raises(StudentFailure, match="Missing key"):
        model(x)
    with raises(student, "RuntimeError"):
        model.load_state_dict({})


def test_the_seed_decides_what_torch_draws_in_the_worker(
    student: Any, connection: WorkerConnection
) -> None:
    connection.begin(5)
    first = student.noise(4)
    assert not torch.equal(student.noise(4), first)
    connection.begin(5)
    assert torch.equal(student.noise(4), first)
    manual_seed(student, 9)
    torch.manual_seed(9)
    assert torch.equal(student.noise(4), torch.rand(4))


def test_the_seed_decides_what_other_generators_draw(connection: WorkerConnection) -> None:
    code = "import random, numpy\ndef draw(): return random.random(), float(numpy.random.rand())\n"
    student = student_at(connection, code)
    drawn = []
    for seed in (1, 1, 2):
        connection.begin(seed)
        manual_seed(student, seed)
        drawn.append(student.draw())
    assert drawn[0] == drawn[1] != drawn[2]


def test_torchs_seed_alone_leaves_other_generators_as_they_are(
    connection: WorkerConnection,
) -> None:
    code = "import random, torch\ndef draw(): return random.random(), float(torch.rand(()))\n"
    student = student_at(connection, code)
    drawn = []
    for _ in range(2):
        manual_seed(student, 3, only_torch=True)
        drawn.append(student.draw())
    assert [first != second for first, second in zip(*drawn)] == [True, False]


# --- names ----------------------------------------------------------------------------------------

NAMES = (
    *("call", "get", "raises", "seed", "watched", "forbidden", "connection", "code", "load"),
    *("close", "function", "subject", "sharing", "manual_seed", "forbidden_in_source"),
)
ANY_NAMES = "".join(
    f"def {name}(x):\n    if x < 0: raise ValueError(x)\n    return [{name!r}, x]\n\n"
    for name in NAMES
)
SUITE = f'''
import pytest
from grader.testing import expect, manual_seed, raises, sharing, watched

@pytest.mark.points(8)
def test_names(student):
    """Every name is the exercise's own."""
    manual_seed(student, 1)
    expect(student.raises(2) == ["raises", 2], "student.raises is not the exercise's")
    for name in {NAMES!r}:
        with watched(student), sharing(student):
            expect(getattr(student, name)(1) == [name, 1], f"{{name}} is not the exercise's")
        with raises(student, "ValueError"):
            getattr(student, name)(-1)
'''


@pytest.fixture
def course_of_any_names(tiny_copy: Path) -> Path:
    folder = tiny_copy / "reference" / "scale"
    (folder / "solution.py").write_text(ANY_NAMES)
    (folder / "test_hidden.py").write_text(SUITE)
    settings = folder / "exercise.toml"
    settings.write_text(
        settings.read_text().replace('"scale", "Scale"', ", ".join(map(repr, NAMES)))
    )
    (folder / "mistakes.toml").write_text("")
    return tiny_copy


@pytest.mark.slow
def test_an_exercise_may_define_functions_of_any_name(
    course_of_any_names: Path, grade: Grade
) -> None:
    result = grade(load_course(course_of_any_names), {"scale": ANY_NAMES}).exercises[0]
    assert [test.message for test in result.tests if test.outcome != "passed"] == []
    assert result.passed


@pytest.mark.slow
def test_an_exercise_may_define_functions_of_any_name_in_an_editor_too(
    course_of_any_names: Path,
) -> None:
    suite = course_of_any_names / "reference" / "scale" / "test_hidden.py"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(suite)],
        check=False,
        capture_output=True,
        text=True,
        cwd=course_of_any_names,
    )
    assert "1 passed" in done.stdout, done.stdout + done.stderr


# --- the environment ------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_worker_sees_a_clean_environment(student: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    os.environ["GRADER_TEST_SECRET"] = "x"
    try:
        with Zygote() as fresh:
            connection = WorkerConnection(lambda: Worker(fresh))
            connection.begin(1)
            seen = student_at(connection).environment()
            connection.close()
    finally:
        del os.environ["GRADER_TEST_SECRET"]
    assert "GRADER_TEST_SECRET" not in seen
    assert set(seen) == {
        *("PATH", "LANG", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"),
        *("HOME", "TMPDIR", "TORCHINDUCTOR_CACHE_DIR", "PYTORCH_JIT"),
    }
    assert str(Path.home()) not in seen.values()
