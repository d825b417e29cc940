"""What the grader's own tests share: the course, a tiny course, one zygote for all."""

from __future__ import annotations

import shutil
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from classroom import Instant

import grader.commands.work
import grader.classroom.workers.pool
import grader.commands.validate
from grader.__main__ import run
from grader.course.course import Course, load_course
from grader.grading.grader import Slot, with_slot
from grader.report import ExerciseResult, Report
from grader.sandbox.confinement.layers import Confinement, Isolation
from grader.sandbox.host.zygote import Zygote
from grader.classroom.workers.pool import Pool
from grader.submissions.submission import Submission

ROOT = Path(__file__).parent.parent
if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    and threading.current_thread().name == "MainThread"
):
    # A shell has its background jobs ignore Ctrl-C, and so whatever they start.
    signal.signal(signal.SIGINT, signal.default_int_handler)
TINY = Path(__file__).parent / "tiny"


@pytest.fixture(scope="session")
def course() -> Course:
    """The real course."""
    return load_course(ROOT)


@pytest.fixture(scope="session")
def solutions(course: Course) -> dict[str, str]:
    """The reference solution of every exercise."""
    return {name: course[name].read("solution.py") for name in course.names}


@pytest.fixture(scope="session")
def zygote() -> Iterator[Zygote]:
    """One zygote for the whole session: torch is imported once over there."""
    with Zygote() as started:
        yield started


@pytest.fixture(scope="session")
def tiny_course() -> Course:
    """A course of one exercise with short limits."""
    return load_course(TINY)


@pytest.fixture
def tiny_copy(tmp_path: Path) -> Path:
    """A copy of the tiny course that a test may change."""
    root = tmp_path / "tiny"
    shutil.copytree(TINY, root, ignore=shutil.ignore_patterns("__pycache__"))
    return root


Grade = Callable[..., Report]


@pytest.fixture
def grade(zygote: Zygote) -> Grade:
    """Grade files (exercise name to text) in a course."""

    def grading(
        course: Course, files: Mapping[str, str] | Submission, *names: str, seed: int = 7
    ) -> Report:
        submission = files
        if not isinstance(files, Submission):
            submission = Submission("s001", files, {name: f"{name}.py" for name in files})
        chosen = names or course.names
        return with_slot(course, chosen, zygote, lambda slot: slot.grade(submission, chosen, seed))

    return grading


@pytest.fixture
def grade_tiny(grade: Grade, tiny_course: Course) -> Callable[[str], ExerciseResult]:
    """Grade one file text in the tiny course."""
    return lambda text: grade(tiny_course, {"scale": text}).exercises[0]


@pytest.fixture(scope="session")
def tiny_solution(tiny_course: Course) -> str:
    """The tiny course's reference solution."""
    return tiny_course["scale"].read("solution.py")


@dataclass(frozen=True)
class Said:
    """What a command printed and how it ended."""

    code: int
    out: str
    err: str


Cli = Callable[..., Said]


class _Shared:
    """The session's zygote, for commands that would start and end one of their own."""

    def __init__(self, zygote: Zygote) -> None:
        self._zygote = zygote

    def __call__(self, confinement: Confinement | None = None) -> _Shared:
        return self

    def __enter__(self) -> Zygote:
        return self._zygote

    def __exit__(self, *exc: object) -> None:
        pass


class _Warm:
    """A pool that whoever closes it leaves warm for the next."""

    def __init__(self, pool: Pool) -> None:
        self.start, self.submit, self.width = pool.start, pool.submit, pool.width

    def close(self) -> None:
        pass


class Pools:
    """Slots that tests share: one warm pool for each state of a course, wherever it lies."""

    def __init__(self) -> None:
        self._pools: dict[tuple[str, Isolation], Pool] = {}
        self._tiny = load_course(TINY)

    def __call__(self, course: Course, isolation: Isolation, size: int) -> _Warm:
        """In place of `Pool`."""
        key = course.hash, isolation
        if key not in self._pools:
            lasting = self._tiny if course.hash == self._tiny.hash else course
            self._pools[key] = Pool(lasting, isolation, 2)
        return _Warm(self._pools[key])

    def at_work(self, course: Course) -> list[int]:
        """The processes of a course's slots that are at work now."""
        return self._pools[course.hash, "confined"].pids[1:]

    def nursery(self, course: Course) -> int:
        """The process that a course's slots are forked from."""
        return self._pools[course.hash, "confined"].pids[0]

    def close(self) -> None:
        """End them all."""
        for pool in self._pools.values():
            pool.close()


@pytest.fixture(scope="session")
def pools() -> Iterator[Pools]:
    """Slots that are warmed up once for all tests."""
    shared = Pools()
    yield shared
    shared.close()


@pytest.fixture
def cli(
    zygote: Zygote,
    pools: Pools,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Cli:
    """Run `grader …` in this process."""
    for module in (grader.commands.work, grader.commands.validate):
        monkeypatch.setattr(module, "Zygote", _Shared(zygote))
    monkeypatch.setattr(grader.classroom.workers.pool, "Pool", pools)

    def running(*arguments: object) -> Said:
        capsys.readouterr()
        code = run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Said(code, captured.out, captured.err)

    return running


@pytest.fixture
def instant(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Instant:
    """Slots that answer at once, for what is not about grading itself."""
    slots = Instant()
    monkeypatch.setattr(grader.classroom.workers.pool, "Pool", slots)
    return slots


@pytest.fixture
def pair(tiny_copy: Path) -> Path:
    """A course of two exercises, `scale` of 8 points and `shift` of 2."""
    folder = tiny_copy / "reference" / "shift"
    folder.mkdir()
    (folder / "exercise.toml").write_text(
        'title = "Shift"\nsummary = "Add a number."\norder = 2\npoints = 2\n'
        'implements = ["shift"]\nhints = ["Add.", "Use +.", "x + by"]\n'
        "call_seconds = 0.4\nexercise_seconds = 8\n"
    )
    (folder / "solution.py").write_text(
        '"""Reference solution: shifting."""\n\n\ndef shift(x, by):\n    """x plus by."""\n'
        "    # --- solution\n    return x + by\n    # --- end\n"
    )
    (folder / "statement.md").write_text("Write `shift(x, by)`.\n")
    (folder / "faults.toml").write_text("")
    (folder / "test_hidden.py").write_text(
        "import pytest\n\n\n@pytest.mark.points(2)\ndef test_shifts(student):\n"
        '    """One and one is two."""\n    assert student.shift(1, 1) == 2\n'
    )
    settings = tiny_copy / "reference" / "course.toml"
    settings.write_text('title = "A pair"\npoints = 10\n')
    return tiny_copy


__all__ = ["Cli", "Grade", "Said", "Slot"]
