"""The pytest plugin: the fixtures `student`, `reference` and `rng`, and the marks of suites.

Who is examined is up to the `Examiner` in the session's stash: graded runs put one there that
reaches across the boundary; a plain `pytest` run gets one that imports the student's files.
Nothing heavy is imported until a test asks for a fixture.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from grader.errors import CheckFailure, Mismatch, StudentFailure

if TYPE_CHECKING:
    from grader.course.course import Course
    from grader.report import Frame
    from grader.sandbox.program import Program
    from grader.testing import Rng

MARKS = (
    "points(n): what the test is worth, a whole number",
    "visible(when): when students see the details: always, after_due or never",
    "needs(name, ...): skipped, not failed, while one of these tests of the same file fails",
    "own_parts: run on the student's own earlier exercises instead of stand-ins",
)


class Examiner(Protocol):
    """Gives a test the code it examines."""

    def student(self, item: pytest.Item) -> contextlib.AbstractContextManager[Any]:
        """The student's module for this test."""

    def reference(self, item: pytest.Item) -> contextlib.AbstractContextManager[Any]:
        """The reference module for this test."""

    def seed(self, item: pytest.Item) -> int:
        """The seed of this test's inputs."""


EXAMINER: pytest.StashKey[Examiner] = pytest.StashKey()
FAILED: pytest.StashKey[set[tuple[Path, str]]] = pytest.StashKey()


# --- fixtures -----------------------------------------------------------------------------------


@pytest.fixture
def student(request: pytest.FixtureRequest) -> Iterator[Any]:
    """The student's module: call its functions, construct its classes."""
    with _examiner(request.config).student(request.node) as module:
        yield module


@pytest.fixture
def reference(request: pytest.FixtureRequest) -> Iterator[Any]:
    """The reference solution's module."""
    with _examiner(request.config).reference(request.node) as module:
        yield module


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> Rng:
    """Random inputs, from the run's seed and this test's name."""
    from grader.testing import Rng

    return Rng(_examiner(request.config).seed(request.node))


def test_seed(seed: int, exercise: str, test: str) -> int:
    """The seed of one test, from the run's seed: the same in every order of tests."""
    digest = hashlib.blake2b(f"{seed}/{exercise}/{test}".encode(), digest_size=7).digest()
    return int.from_bytes(digest, "big")


test_seed.__test__ = False  # type: ignore[attr-defined]


# --- hooks --------------------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--submission` and `--grading-seed`, for plain pytest runs."""
    group = parser.getgroup("attention-grader")
    group.addoption(
        "--submission",
        metavar="DIR",
        type=Path,
        help="examine the exercise files in DIR (default: those beside the suites)",
    )
    group.addoption(
        "--grading-seed", metavar="N", type=int, default=0, help="draw random inputs from seed N"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Make the marks known."""
    for mark in MARKS:
        config.addinivalue_line("markers", mark)
    config.stash[FAILED] = set()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test while one that it needs fails."""
    failed = item.config.stash[FAILED]
    for mark in item.iter_markers("needs"):
        for name in mark.args:
            if name != item.name and (item.path, name) in failed:
                pytest.skip(f"waits for: {name}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Remember failures for `needs`; show a verdict as its own words, not as a traceback."""
    report = yield
    if report.failed:  # type: ignore[attr-defined]
        item.config.stash[FAILED].add((item.path, item.name))
        error = call.excinfo.value if call.excinfo else None
        if isinstance(error, CheckFailure) and uses_student(item):
            report.longrepr = _verdict(item, error)  # type: ignore[attr-defined]
    return report


def uses_student(item: pytest.Item) -> bool:
    """Whether a test is one of a suite, rather than some other test in the same session."""
    return "student" in getattr(item, "fixturenames", ())


def sentence(item: pytest.Item, name: str = "") -> str:
    """The line that the student reads: the first of a test's docstring."""
    function = getattr(item, "function", None)
    if name:
        function = getattr(getattr(item, "module", None), name, None)
    doc = (getattr(function, "__doc__", None) or name or item.name).strip()
    return str(doc.splitlines()[0])


def _verdict(item: pytest.Item, error: CheckFailure) -> str:
    lines = [sentence(item), f"    {error.message}"]
    difference = error.difference if isinstance(error, Mismatch) else None
    if difference is not None:
        for label, part in (("expected", difference.expected), ("actual", difference.actual)):
            lines.append(f"  {label}:")
            lines += [f"    {row}" for row in part.text.splitlines()]
    frames: tuple[Frame, ...] = error.frames if isinstance(error, StudentFailure) else ()
    for frame in frames[-1:]:
        lines.append(f"  {frame.file}:{frame.line}:  {frame.source.strip()}")
    return "\n".join(lines)


# --- plain pytest runs --------------------------------------------------------------------------


def _examiner(config: pytest.Config) -> Examiner:
    if EXAMINER not in config.stash:
        config.stash[EXAMINER] = _Direct(config)
    return config.stash[EXAMINER]


class _Direct:
    """Examines files in this process: those in `--submission`, else those beside the suite."""

    def __init__(self, config: pytest.Config) -> None:
        self._submission: Path | None = config.getoption("submission")
        self._seed: int = config.getoption("grading_seed")
        self._courses: dict[Path, Course] = {}
        self._programs: dict[Path, Program] = {}

    def _course(self, item: pytest.Item) -> Course:
        from grader.course.course import find_course

        if item.path.parent not in self._courses:
            self._courses[item.path.parent] = find_course(item.path.parent)
        return self._courses[item.path.parent]

    def _program(self, folder: Path, course: Course) -> Program:
        from grader.grading.direct import files_in
        from grader.sandbox.program import Program

        if folder not in self._programs:
            self._programs[folder] = Program(files_in(folder, course))
        return self._programs[folder]

    @contextlib.contextmanager
    def student(self, item: pytest.Item) -> Iterator[Any]:
        from grader.grading.direct import DirectStudent

        course = self._course(item)
        name = exercise_of(item, course)
        folder = self._submission or (
            course.reference if item.path.parent.name == name else item.path.parent.parent
        )
        program = self._program(folder, course)
        with program.active():
            yield DirectStudent(program, name, course[name].forbidden)

    @contextlib.contextmanager
    def reference(self, item: pytest.Item) -> Iterator[Any]:
        course = self._course(item)
        yield self._program(course.reference, course).load(exercise_of(item, course))

    def seed(self, item: pytest.Item) -> int:
        return test_seed(self._seed, exercise_of(item, self._course(item)), item.name)


def exercise_of(item: pytest.Item, course: Course) -> str:
    """The exercise that a test belongs to: its folder's name, or its file's without `test_`."""
    folder = item.path.parent.name
    return folder if folder in course.names else item.path.stem.removeprefix("test_")
