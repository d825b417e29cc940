"""The pytest plugin: the fixtures `student`, `reference` and `rng`, and the marks of suites."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from grader.errors import CheckFailure, Mismatch, StudentFailure

# pytest loads this plugin in every run of the environment, so modules with torch are imported
# later.
if TYPE_CHECKING:
    from grader.grading.rng import Rng

MARKS = (
    "points(n): what the test is worth, a whole number",
    "visible(when): when students see the details: always, after_due or never",
    "needs(name, ...): skip the test if one of these tests of the same file failed",
    "own_parts: run on the student's own earlier exercises instead of stand-ins",
)


class Examiner(Protocol):
    """Gives tests their fixtures: across the process boundary, or imported in plain pytest runs."""

    def student(self, item: pytest.Item) -> contextlib.AbstractContextManager[Any]:
        """Give the student's module for this test."""

    def reference(self, item: pytest.Item) -> ModuleType:
        """Return the reference solution's module for this test."""

    def rng(self, item: pytest.Item) -> Rng:
        """Return the source of this test's random inputs."""

    def cases(self, item: pytest.Item) -> Any:
        """Return the function that asks the cases of a check and stores the answers."""


EXAMINER: pytest.StashKey[Examiner] = pytest.StashKey()
# By test: the failed test, which is itself or the one that it was skipped for.
FAILED: pytest.StashKey[dict[tuple[Path, str], str]] = pytest.StashKey()


@pytest.fixture
def student(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Yield the student's module: call its functions, construct its classes."""
    with _examiner(request.config).student(request.node) as module:
        yield module


@pytest.fixture
def reference(request: pytest.FixtureRequest) -> ModuleType:
    """Return the reference solution's module."""
    return _examiner(request.config).reference(request.node)


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> Rng:
    """Return the source of random inputs, seeded from the run's seed and this test's name."""
    return _examiner(request.config).rng(request.node)


@pytest.fixture
def cases(request: pytest.FixtureRequest) -> Any:
    """Return the function that asks the cases of a check."""
    return _examiner(request.config).cases(request.node)


def pytest_pycollect_makeitem(
    collector: pytest.Module | pytest.Class, name: str, obj: object
) -> pytest.Function | None:
    """Collect each check of a suite as a test."""
    if type(obj).__name__ != "Check" or type(obj).__module__ != "grader.grading.cases":
        return None
    check: Any = obj  # its class is not imported here, because that would import torch
    check.name = name
    item = pytest.Function.from_parent(collector, name=name, callobj=check.function)
    item.add_marker(pytest.mark.points(check.points))
    if check.visible != "always":
        item.add_marker(pytest.mark.visible(check.visible))
    return item


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--submission` and `--grading-seed`, for plain pytest runs."""
    group = parser.getgroup("attention-grader")
    group.addoption(
        "--submission",
        metavar="DIR",
        type=Path,
        help="test the exercise files in DIR (default: those beside the suites)",
    )
    group.addoption(
        "--grading-seed", metavar="N", type=int, default=0, help="draw random inputs from seed N"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marks."""
    for mark in MARKS:
        config.addinivalue_line("markers", mark)
    config.stash[FAILED] = {}


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test if one that it needs failed, or was skipped for a failed one."""
    failed = item.config.stash[FAILED]
    for name in needs_of(item):
        if cause := failed.get((item.path, name)):
            from grader.course.visibility import SKIPPED_UNTIL  # noqa: PLC0415

            failed[item.path, item.name] = cause
            pytest.skip(SKIPPED_UNTIL.format(cause))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Remember failures for `needs`; show the message of a `CheckFailure`, not its traceback."""
    report = yield
    if report.failed:  # type: ignore[attr-defined]
        item.config.stash[FAILED][item.path, item.name] = item.name
        error = call.excinfo.value if call.excinfo else None
        # A session may also have tests that are not ours.
        if isinstance(error, CheckFailure) and "student" in getattr(item, "fixturenames", ()):
            report.longrepr = _failure_text(item, error)  # type: ignore[attr-defined]
    return report


def needs_of(item: pytest.Item) -> list[str]:
    """Return the names of the tests that a test needs, also by a mark of the whole file."""
    marks = item.iter_markers("needs")
    return [name for mark in marks for name in mark.args if name != item.name]


def sentence(item: pytest.Item) -> str:
    """Return the line that students read: the first of a test's docstring, or the test's name."""
    doc = getattr(getattr(item, "function", None), "__doc__", None) or item.name
    return str(doc).strip().splitlines()[0]


def _failure_text(item: pytest.Item, error: CheckFailure) -> str:
    lines = [sentence(item), f"    {error.message}"]
    difference = error.difference if isinstance(error, Mismatch) else None
    if difference is not None:
        for label, part in (("expected", difference.expected), ("actual", difference.actual)):
            lines += [f"  {label}:", *(f"    {row}" for row in part.text.splitlines())]
    if isinstance(error, StudentFailure) and error.frames:
        frame = error.frames[-1]
        lines.append(f"  {frame.file}:{frame.line}:  {frame.source.strip()}")
    return "\n".join(lines)


def _examiner(config: pytest.Config) -> Examiner:
    if EXAMINER not in config.stash:
        from grader.grading.plain import DirectExaminer  # noqa: PLC0415

        config.stash[EXAMINER] = DirectExaminer(config)
    return config.stash[EXAMINER]
