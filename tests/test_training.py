"""A model is trained once, within limits, with its progress told; what is no training is named."""

from __future__ import annotations

import functools
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from commandline import Cli, Grade
from remote_code import code_at, student_at

from grader.course.course import load_course
from grader.errors import CheckFailure, CourseError, StudentFailure
from grader.grading.training import TrainingRun, trained
from grader.sandbox.host.connection import TimeLimits, WorkerConnection
from grader.sandbox.host.proxies import RemoteCode, Student
from grader.sandbox.host.training import TrainingLimits
from grader.sandbox.host.worker import Worker
from grader.sandbox.host.zygote import Zygote
from grader.user_folders import cache_folder

CODE = """
import time
import torch
from torch import nn


class Line(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(2))

    def forward(self, x):
        return x @ self.weight


def fit(line, steps, report=None):
    for step in range(steps):
        loss = (line.weight - 3).square().mean()
        (grad,) = torch.autograd.grad(loss, line.weight)
        with torch.no_grad():
            line.weight -= 0.1 * grad
        report(step, loss)
"""
LIMITS = TimeLimits(2, 30, TrainingLimits(seconds=60))


def code_of(
    connection: WorkerConnection, text: str = CODE, limits: TimeLimits = LIMITS
) -> tuple[RemoteCode, Any]:
    connection.begin(1)
    code = code_at(connection, text, limits=limits)
    return code, Student(code)


def fit(student: Any, steps: int = 40, name: str = "line") -> TrainingRun:
    return trained(student, name, student.Line, lambda m, report: student.fit(m, steps, report))


@pytest.mark.slow
def test_a_training_gives_its_module_and_its_losses(connection: WorkerConnection) -> None:
    code, student = code_of(connection)
    heard: list[tuple[str, int, float]] = []
    code.trainings.on_report = lambda *told: heard.append(told)
    run = fit(student)
    assert run.module.state_dict()["weight"].sub(3).abs().max() < 0.1
    assert [step for step, _ in run.losses] == list(range(40))
    assert run.losses[0][1] > 10 * run.losses[-1][1]
    assert heard == [("line", step, loss) for step, loss in run.losses]


def test_a_training_is_done_once(connection: WorkerConnection) -> None:
    code, student = code_of(connection, CODE.replace("def fit(", "print('fits')\ndef fit("))
    first, again = fit(student), fit(student, steps=1)
    assert torch.equal(first.module.weight, again.module.weight)
    assert first.losses == again.losses
    other = fit(student, 1, "another")
    assert not torch.equal(first.module.weight, other.module.weight)
    assert set(code.trainings.done) == {"line", "another"}


def test_the_trained_module_is_another_one_with_the_same_parameters(
    connection: WorkerConnection,
) -> None:
    hides = CODE.replace("    for step", "    line.answer = 42\n    for step")
    _, student = code_of(connection, hides)
    run = fit(student)
    with pytest.raises(StudentFailure, match="answer"):
        _ = run.module.answer
    assert run.module.training is False


@pytest.mark.slow
def test_of_many_reports_some_are_told_and_the_last_one(connection: WorkerConnection) -> None:
    _, student = code_of(connection)
    losses = fit(student, 5001).losses
    assert losses[0][0] == 0
    assert losses[-1][0] == 5000
    assert 100 < len(losses) < 1100
    assert [step for step, _ in losses] == sorted({step for step, _ in losses})


TRAININGS = {
    "report": ("report(step, loss)", "report('first', loss)", "invalid literal for int"),
    "no number": ("report(step, loss)", "report(step, line.weight)", "only one element"),
    "raised": ("report(step, loss)", "raise KeyError(step)", "0"),
    "frozen": ("line.weight -= 0.1 * grad", "pass", "the training changed no parameter"),
    "other parameters": (
        "line.weight -= 0.1 * grad",
        "line.bias = nn.Parameter(torch.ones(1))",
        "changed which parameters there are",
    ),
    "diverged at once": (
        "report(step, loss)",
        "report(step, loss * float('nan'))",
        "the training diverged: the loss of step 0 is not finite",
    ),
    "diverged": ("0.1 * grad", "1e40 * grad", "the training diverged: the loss of step 1 is not"),
    "not finite": (
        "report(step, loss)",
        "line.weight.data[0] = torch.nan",
        "the training diverged: weight holds numbers that are not finite",
    ),
    "climbs": ("-= 0.1", "+= 0.02", "the training diverged: the loss rose from"),
    "never ends": (
        "report(step, loss)",
        "report(step, loss)\n        while step == 7: time.sleep(0.1)",
        "did not finish within 2 seconds; it was at `.*sleep.*`; its last report was of step 7",
    ),
    "computes too long": (
        "report(step, loss)",
        "report(step, loss)\n        while step == 7: pass",
        "took more than 1 seconds of computing; its last report was of step 7, with the loss",
    ),
    "needs too much": (
        "report(step, loss)",
        "report(step, loss)\n        kept = torch.ones(30_000_000)\n        time.sleep(60)",
        "took more than 50 MB of memory; its last report was of step 0",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TRAININGS)
def test_what_is_no_training_is_told_in_a_sentence(connection: WorkerConnection, name: str) -> None:
    old, new, says = TRAININGS[name]
    assert old in CODE
    limits = TrainingLimits(20.0, 20.0, 50)
    if name == "never ends":
        limits = TrainingLimits(2.0, 20.0, 50)
    elif name == "computes too long":
        limits = TrainingLimits(60.0, 1.0, 50)
    text = CODE.replace(old, new)
    _, student = code_of(connection, text, TimeLimits(2, 30, limits))
    with pytest.raises(CheckFailure) as failure:
        fit(student)
    assert re.search(says, failure.value.message)
    del student.__code__.connection  # what is told again is not done again
    with pytest.raises(CheckFailure) as again:
        fit(student)
    assert again.value.message == failure.value.message


def test_a_mask_of_infinities_is_no_broken_training(connection: WorkerConnection) -> None:
    mask = "self.register_buffer('mask', torch.full((2, 2), -torch.inf).triu(1))"
    marked = "self.weight = nn.Parameter(torch.randn(2))"
    _, student = code_of(connection, CODE.replace(marked, f"{marked}\n        {mask}"))
    assert fit(student).module.state_dict()["mask"].isinf().any()


@pytest.mark.slow
def test_training_does_not_use_up_the_time_of_the_exercise(connection: WorkerConnection) -> None:
    slow = CODE.replace("report(step, loss)", "time.sleep(0.04)")
    _, student = code_of(connection, slow, TimeLimits(1, 1.5, TrainingLimits(30)))
    run = fit(student, 60)  # longer than a call may take, and than the exercise
    assert run.module(torch.ones(2)).shape == ()


@pytest.mark.slow
def test_all_trainings_share_their_time(connection: WorkerConnection) -> None:
    slow = CODE.replace("report(step, loss)", "time.sleep(0.04)")
    _, student = code_of(connection, slow, TimeLimits(2, 30, TrainingLimits(2)))
    fit(student, 30)
    with pytest.raises(StudentFailure, match="did not finish within"):
        fit(student, 30, "more")
    connection.begin(2)
    with pytest.raises(CheckFailure, match="the time for training in this exercise is used up"):
        fit(student, 1, "even more")


def test_an_exercise_that_trains_says_so(connection: WorkerConnection) -> None:
    _, student = code_of(connection, limits=TimeLimits(2, 30))
    with pytest.raises(CourseError, match=r"\[training\]"):
        fit(student)


@pytest.mark.parametrize(
    "code",
    [
        "def later(report): global kept; kept = report\ndef now(): kept(1, 2.0); return 7",
        "def later(report): return report\ndef now(): return 7",
    ],
)
def test_reports_outside_of_their_call_are_lost(connection: WorkerConnection, code: str) -> None:
    text = f"{CODE}\n{code}\n"
    proxy, student = code_of(connection, text)
    heard: list[Any] = []
    proxy.trainings.on_report = lambda *told: heard.append(told)
    with proxy.training("it") as (report, _):
        student.later(report)
    assert student.now() == 7
    assert heard == []


def test_a_flood_of_reports_ends_the_worker(connection: WorkerConnection) -> None:
    flood = (
        "    import sys; sys.modules['grader.sandbox.worker.progress'].DENSE = 10**9\n    for step"
    )
    _, student = code_of(connection, CODE.replace("    for step", flood))
    with pytest.raises(StudentFailure, match="progress was reported more than 4096 times"):
        fit(student, 10_000)


@pytest.mark.parametrize("number", [0, 10**6])
def test_progress_of_another_call_ends_the_worker(
    connection: WorkerConnection, number: int
) -> None:
    forged = f"    report.__self__._number = {number}\n    for step"
    _, student = code_of(connection, CODE.replace("    for step", forged))
    with pytest.raises(StudentFailure, match="progress of no call"):
        fit(student, 3)


def test_a_report_in_a_call_that_is_no_training_breaks_nothing(
    connection: WorkerConnection,
) -> None:
    proxy, student = code_of(connection)
    with proxy.training("it") as (report, log):
        pass
    with pytest.raises(CheckFailure):
        student.fit(student.Line(), 3, report)
    assert log.losses == ()


OPTIMIZER = """
import sys
import torch


def step():
    weight, before = torch.nn.Parameter(torch.ones(3)), set(sys.modules)
    optimizer = torch.optim.AdamW([weight])
    weight.sum().backward()
    optimizer.step()
    return len(set(sys.modules) - before)
"""


@pytest.mark.slow
def test_workers_that_train_start_with_what_an_optimizer_imports() -> None:
    with Zygote() as zygote:
        zygote.prepare_training()
        for _ in range(2):
            connection = WorkerConnection(lambda: Worker(zygote))
            connection.begin(1)
            assert student_at(connection, OPTIMIZER).step() < 10
            connection.close()


# --- in a course ----------------------------------------------------------------------------------

SUITE = '''
import pytest
from grader.testing import expect, trained


def run(student):
    def train(line, report):
        student.fit(line, 30, report)

    return trained(student, "line", student.Line, train)


@pytest.mark.points(1)
def test_learns(student):
    """The loss falls."""
    losses = run(student).losses
    expect(losses[-1][1] < losses[0][1] / 10, "the loss does not fall")


@pytest.mark.points(1)
def test_parameters(student):
    """The weight comes close to 3."""
    expect((run(student).module.weight - 3).abs().max() < 0.5, "the weight is another one")
'''


@pytest.fixture
def course_that_trains(tiny_copy: Path) -> Path:
    folder = tiny_copy / "reference" / "scale"
    (folder / "test_hidden.py").write_text(SUITE)
    (folder / "solution.py").write_text(f"# --- solution{CODE}# --- end\n")
    settings = (folder / "exercise.toml").read_text()
    (folder / "exercise.toml").write_text(f"{settings}\n[training]\nseconds = 60\n")
    return tiny_copy


def test_a_course_trains_once_for_all_tests_and_shows_the_curve(
    course_that_trains: Path, grade: Grade
) -> None:
    course = load_course(course_that_trains)
    (result,) = grade(course, {"scale": CODE}).exercises
    assert [test.outcome for test in result.tests] == ["passed", "passed"]
    (curve,) = result.curves
    assert curve.name == "line"
    assert curve.steps == tuple(range(30))
    assert curve.losses[0] > 10 * curve.losses[-1]


def kept() -> list[Path]:
    folder = cache_folder()
    assert folder is not None
    return sorted(folder.glob("*/*"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "is_same"),
    [
        (
            "def fit(line, steps, report=None):\n",
            "def fit(line, steps, report=None):\n    'Fits.'\n",
            1,
        ),
        ("def fit(", "# A comment.\n\n\ndef fit(", 1),
        ("import time\n", '"""A file."""\n\nimport time  # of day\n', 1),
        ("super().__init__()", "super( ).__init__()", 1),
        ("0.1 * grad", "0.2 * grad", 0),
        ("        return x @ self.weight", "        return 2 * x @ self.weight", 0),
        ("    for step in range(steps):", "    for step in range(steps + 1):", 0),
        ("report(step, loss)", "report(step, loss); 'a text'; 'b'", 0),
    ],
)
def test_the_same_code_is_not_trained_again(
    course_that_trains: Path, grade: Grade, old: str, new: str, is_same: int
) -> None:
    course = load_course(course_that_trains)
    both = functools.partial(grade, course, trainings="of any seed")
    (first,) = both({"scale": CODE}, seed=1).exercises
    assert len(kept()) == 1
    assert old in CODE
    (again,) = both({"scale": CODE.replace(old, new)}, seed=2).exercises
    (curve,), (old_curve,) = again.curves, first.curves
    assert (curve == old_curve) == bool(is_same)
    assert (old_curve.kept, curve.kept) == (False, bool(is_same))
    assert ("(kept from an earlier check" in curve.caption) == curve.kept
    assert again.passed == first.passed


@pytest.mark.slow
def test_a_given_seed_is_trained_with_whatever_was_kept(cli: Cli, course_that_trains: Path) -> None:
    shutil.copy(course_that_trains / "reference/scale/solution.py", course_that_trains / "scale.py")

    def curve(*seed: str) -> dict[str, Any]:
        place = ("--course", course_that_trains, "--format", "json")
        said = cli("check", course_that_trains / "scale.py", *place, *seed)
        (found,) = json.loads(said.out)["exercises"][0]["curves"]
        return found

    drawn, again = curve(), curve()
    assert again == drawn | {"kept": True}
    first, second = curve("--seed", "1"), curve("--seed", "2")
    assert not first["kept"]
    assert not second["kept"]
    assert first["losses"] != second["losses"]
    assert curve("--seed", "1") == first | {"kept": True}


@pytest.mark.slow
@pytest.mark.parametrize(
    "content", [b"", b"no msgpack", b"\x92\xa1a\x80", bytes(32) + b"\x92\x90\x80"]
)
def test_what_was_kept_and_cannot_be_read_is_trained_again(
    course_that_trains: Path, grade: Grade, content: bytes
) -> None:
    course = load_course(course_that_trains)
    grade(course, {"scale": CODE})
    (path,) = kept()
    path.write_bytes(content)
    (result,) = grade(course, {"scale": CODE}).exercises
    assert result.passed
    assert len(path.read_bytes()) > 100


@pytest.mark.slow
def test_what_somebody_else_has_kept_is_not_believed(
    course_that_trains: Path, grade: Grade, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    course = load_course(course_that_trains)

    def is_kept() -> bool:
        (result,) = grade(course, {"scale": CODE}).exercises
        return result.curves[0].kept

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "theirs"))
    assert [is_kept(), is_kept()] == [False, True]
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "mine"))
    assert [is_kept(), is_kept()] == [False, True]
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null/nowhere")
    assert [is_kept(), is_kept()] == [False, False]


@pytest.mark.slow
def test_a_program_that_is_no_python_is_kept_as_it_is(
    course_that_trains: Path, grade: Grade
) -> None:
    course = load_course(course_that_trains)
    for broken in ("def fit(:\n", "'''", "\tx\n  y\n"):
        (result,) = grade(course, {"scale": broken}).exercises
        assert not result.passed
