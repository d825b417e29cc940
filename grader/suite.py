"""A warm pytest session: suites collected once, then run against one submission after another.

pytest-json-report makes each run's results; `_Results` and `_outcome` are the one place that knows
its format. Everything above deals in `Outcome`s.
"""

from __future__ import annotations

import contextlib
import gc
import inspect
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import pytest
import torch
from pytest_jsonreport.plugin import JSONReport

from grader import pytest_plugin
from grader.catalog import Course
from grader.errors import CheckFailure, CourseError, InternalError, Mismatch, StudentFailure
from grader.programs import program
from grader.pytest_plugin import EXAMINER, FAILED
from grader.records import Frame, Outcome
from grader.sandbox.program import Program
from grader.sandbox.proxies import Desk, Limits, Recorded, Student
from grader.submissions import Submission
from grader.testing import Rng

T = TypeVar("T")

PYTEST_ARGUMENTS = (
    "--import-mode=importlib",
    "--assert=plain",
    "--noconftest",
    "--capture=no",
    "--tb=no",
    "--quiet",
    "--disable-plugin-autoload",
    "--json-report-file=none",
    "--strict-markers",
    f"-c{os.devnull}",
    "-pno:cacheprovider",
    "-pno:faulthandler",
    "-pno:logging",
    "-pno:threadexception",
    "-pno:unraisableexception",
    "-pno:warnings",
    "-ppytest_metadata.plugin",
    "-ppytest_jsonreport.plugin",
    "-pgrader.pytest_plugin",
)
Records = dict[tuple[str, str], list[Recorded]]  # (exercise, test) to the test's calls
OMIT = ["collectors", "log", "traceback", "streams", "warnings", "keywords"]
PLAIN_KINDS = {"Timeout", "Crash", "Protocol", "Missing", "Forbidden"}  # need no type in front
MAX_MESSAGE = 600


def with_suite(course: Course, names: Sequence[str], body: Callable[[Suite], T]) -> T:
    """Collect the suites of `names` once and give them to `body`, warm, as a `Suite`."""
    for name in names:
        if not course.suite(name).is_file():
            raise CourseError(f"{course.suite(name)} is missing", "grader build")
    torch.set_num_threads(1)
    loop = _Loop(course, body)
    paths = [str(course.suite(name)) for name in names]
    try:
        code = pytest.main([*PYTEST_ARGUMENTS, f"--rootdir={course.root}", *paths], plugins=[loop])
    finally:
        _forget(paths)
    if loop.error is not None:
        raise loop.error
    if not loop.done:
        raise InternalError(f"pytest ended with code {code} before a suite could run")
    return loop.result  # type: ignore[no-any-return]


def _forget(paths: Sequence[str]) -> None:
    """Have the next session read the suites anew, rather than find them among the modules."""
    for name, module in list(sys.modules.items()):
        if getattr(module, "__file__", None) in paths:
            del sys.modules[name]


class _Loop:
    """Takes the place of pytest's own test loop."""

    def __init__(self, course: Course, body: Callable[[Suite], Any]) -> None:
        self.course, self.body = course, body
        self.result: Any = None
        self.done = False
        self.error: BaseException | None = None
        self._broken: list[Any] = []

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        """Keep pytest from printing; results go through `_Results`."""
        config.pluginmanager.unregister(name="terminalreporter")
        config.option.json_report_omit = OMIT

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Remember suites that do not collect."""
        if report.failed:
            self._broken.append(report)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Hand the collected session to the body, and take over its result or error."""
        try:
            if self._broken:
                report = self._broken[0]
                raise CourseError(f"{report.nodeid} does not collect:\n{report.longrepr}")
            results = _Results(session.config)
            session.config.pluginmanager.register(results)
            results.pytest_sessionstart(session)
            gc.collect()
            gc.freeze()
            try:
                self.result = self.body(Suite(session, results, self.course))
                self.done = True
            finally:
                gc.unfreeze()
        except BaseException as error:
            self.error = error
        return True

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        """Run a test on our fixtures alone in one phase, a third of pytest's work for a test.

        A test with fixtures of its own is left to pytest.
        """
        if ARGUMENTS not in item.stash:
            return None
        call = pytest.CallInfo.from_call(
            lambda: _examine(item), "call", reraise=(KeyboardInterrupt, pytest.exit.Exception)
        )
        report = item.ihook.pytest_runtest_makereport(item=item, call=call)
        item.ihook.pytest_runtest_logreport(report=report)
        return True

    @pytest.hookimpl(optionalhook=True)
    def pytest_json_runtest_metadata(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> dict[str, Any] | None:
        """Give the JSON report our own account of a failure."""
        if call.excinfo is None:
            return None
        item.stash[ERROR] = call.excinfo.value
        return {"failed_in": call.when}


class _Results(JSONReport):  # type: ignore[misc]
    """pytest-json-report, started afresh for every run of the same session."""

    def pytest_addhooks(self, pluginmanager: pytest.PytestPluginManager) -> None:
        """The plugin's module has added its hooks already."""
        from pytest_jsonreport.plugin import Hooks

        pluginmanager.add_hookspecs(Hooks)

    def of(self, session: pytest.Session, items: Sequence[pytest.Item]) -> list[dict[str, Any]]:
        """Run `items` and return the JSON report's entry of each."""
        self.__init__(session.config)  # type: ignore[misc]
        self.pytest_sessionstart(session)
        for item, following in zip(items, [*items[1:], None]):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        self.pytest_sessionfinish(session)
        return self.report["tests"]  # type: ignore[no-any-return]


def _examine(item: pytest.Item) -> None:
    """Call a test function with what our fixtures would give it."""
    pytest_plugin.pytest_runtest_setup(item)
    examiner = item.config.stash[EXAMINER]
    arguments: dict[str, Any] = {}
    with contextlib.ExitStack() as stack:
        for name in item.stash[ARGUMENTS]:
            if name == "rng":
                arguments[name] = Rng(examiner.seed(item))
            else:
                arguments[name] = stack.enter_context(getattr(examiner, name)(item))
        item.obj(**arguments)  # type: ignore[attr-defined]


ERROR: pytest.StashKey[BaseException] = pytest.StashKey()
ARGUMENTS: pytest.StashKey[tuple[str, ...]] = pytest.StashKey()
FIXTURES = {"student", "reference", "rng", "request"}


class Suite:
    """The collected tests of some exercises."""

    def __init__(self, session: pytest.Session, results: _Results, course: Course) -> None:
        self._session, self._results, self.course = session, results, course
        self.items: dict[str, list[pytest.Item]] = {}
        for item in session.items:
            self.items.setdefault(pytest_plugin.exercise_of(item, course), []).append(item)
            if isinstance(item, pytest.Function) and set(item.fixturenames) <= FIXTURES:
                item.stash[ARGUMENTS] = tuple(inspect.signature(item.function).parameters)
        self._references: dict[str, Any] = {}

    def run(self, examiner: SandboxExaminer, name: str) -> tuple[Outcome, ...]:
        """The outcomes of exercise `name`'s tests on what `examiner` examines."""
        config = self._session.config
        config.stash[EXAMINER] = examiner
        config.stash[FAILED] = set()
        items = self.items.get(name, [])
        entries = self._results.of(self._session, items)
        return tuple(
            _outcome(entry, item, examiner.submission) for entry, item in zip(entries, items)
        )

    def reference(self, name: str) -> Any:
        """The module of the reference solution, loaded once."""
        if name not in self._references:
            files = {n: self.course[n].read("solution.py") for n in self.course.names}
            _, sources = program(self.course, self.course[name], files)
            self._references[name] = Program(sources).load(name)
        return self._references[name]


class SandboxExaminer:
    """Gives tests the student's code across the boundary, and keeps each test's record."""

    def __init__(self, suite: Suite, submission: Submission, desk: Desk, seed: int) -> None:
        self.suite, self.submission, self.desk = suite, submission, desk
        self._seed = seed
        self.records: Records = {}

    @contextlib.contextmanager
    def student(self, item: pytest.Item) -> Iterator[Student]:
        """The student's module, in a state that no earlier test has touched."""
        course = self.suite.course
        exercise = course[pytest_plugin.exercise_of(item, course)]
        own_parts = item.get_closest_marker("own_parts") is not None
        seed = self.seed(item)
        torch.default_generator.manual_seed(seed)
        self.desk.begin(seed)
        name, sources = program(course, exercise, self.submission.files, own_parts=own_parts)
        limits = Limits(exercise.call_seconds, exercise.exercise_seconds)
        try:
            yield Student(self.desk, exercise.name, limits, name, sources, exercise.forbidden)
        finally:
            self.records[exercise.name, item.name] = self.desk.record
            item.stash[PRINTED] = "".join(self.desk.printed)

    @contextlib.contextmanager
    def reference(self, item: pytest.Item) -> Iterator[Any]:
        """The reference solution's module."""
        yield self.suite.reference(pytest_plugin.exercise_of(item, self.suite.course))

    def seed(self, item: pytest.Item) -> int:
        """The seed of this test's inputs."""
        exercise = pytest_plugin.exercise_of(item, self.suite.course)
        return pytest_plugin.test_seed(self._seed, exercise, item.name)


PRINTED: pytest.StashKey[str] = pytest.StashKey()


# --- from pytest-json-report's entries to outcomes ------------------------------------------------


def points_of(item: pytest.Item) -> int:
    """What a test is worth: its `points` mark, 1 without."""
    mark = item.get_closest_marker("points")
    return int(mark.args[0]) if mark else 1


def _outcome(entry: dict[str, Any], item: pytest.Item, submission: Submission) -> Outcome:
    error = item.stash.get(ERROR, None)
    if error is not None:
        del item.stash[ERROR]
    worth = points_of(item)
    visible = item.get_closest_marker("visible")
    verdict = {"passed": "passed", "skipped": "skipped", "failed": "failed"}.get(
        entry["outcome"], "error"
    )
    common: dict[str, Any] = {
        "name": item.name,
        "sentence": pytest_plugin.sentence(item),
        "max_points": worth,
        "printed": clean(item.stash.get(PRINTED, "")),
        "visible": visible.args[0] if visible else "always",
    }
    if verdict == "passed":
        return Outcome(outcome="passed", points=worth, **common)
    if verdict == "skipped":
        return Outcome(outcome="skipped", points=0, message=str(error), **common)
    return Outcome(outcome=verdict, points=0, **common, **_account(error, submission))  # type: ignore[arg-type]


def _account(error: BaseException | None, submission: Submission) -> dict[str, Any]:
    """What the student is told of a failure; never pytest's text, never a line of a suite."""
    if isinstance(error, Mismatch):
        difference = error.difference
        return {
            "message": clean(error.message),
            "kind": difference.aspect if difference else "property",
            "expected": difference.expected if difference else None,
            "actual": difference.actual if difference else None,
        }
    if isinstance(error, StudentFailure):
        message = clean(error.message)
        if error.kind not in PLAIN_KINDS:
            message = (
                f"your code raised {error.kind}: {message}"
                if message
                else (f"your code raised {error.kind}")
            )
        where = _placed(error.frames[-1], submission) if error.frames else None
        return {"message": message, "kind": clean(error.kind), "where": where}
    if isinstance(error, CheckFailure):
        return {"message": clean(error.message), "kind": "property"}
    kind = type(error).__name__
    if isinstance(error, AssertionError):
        return {"message": "this does not hold for your code", "kind": "property"}
    text = clean(str(error)).partition("\n")[0]
    return {"message": f"what your code returned cannot be used here ({text})", "kind": kind}


def _placed(frame: Frame, submission: Submission) -> Frame:
    path = submission.paths.get(frame.file.removesuffix(".py"), frame.file)
    return Frame(path, frame.line, clean(frame.source), frame.column, clean(frame.function))


_CONTROL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f]|[\u202a-\u202e]")


def clean(text: str) -> str:
    """A student's text without terminal controls, at a length that fits a report."""
    text = _CONTROL.sub("", text)
    return text if len(text) <= MAX_MESSAGE else text[:MAX_MESSAGE] + " […]"
