"""A warm pytest session: suites collected once, then run against one submission after another.

pytest-json-report makes each run's results. Everything above deals in `Outcome`s.
"""

from __future__ import annotations

import contextlib
import gc
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any, TypeVar

import pytest
import torch
from pytest_jsonreport.plugin import JSONReport

from grader.grading import plugin as pytest_plugin
from grader.course.course import Course
from grader.errors import CourseError, GraderError, InternalError
from grader.grading.examiner import SandboxExaminer
from grader.grading.outcomes import EVIDENCE, Evidence, outcome_of
from grader.grading.programs import References
from grader.grading.plugin import EXAMINER, FAILED
from grader.report import Outcome
from grader.sandbox.confinement.layers import mapped_bytes
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
HEADROOM_BYTES = 2 * 1024**3  # of memory for the trusted side, above what it has mapped
OMIT = ["collectors", "log", "traceback", "streams", "warnings", "keywords"]


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
                with _bounded_memory():
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
            lambda: _examine(item),
            "call",
            # A grader that cannot grade says so once, rather than fail every test of everybody.
            reraise=(KeyboardInterrupt, pytest.exit.Exception, GraderError),
        )
        report = item.ihook.pytest_runtest_makereport(item=item, call=call)
        item.ihook.pytest_runtest_logreport(report=report)
        if call.excinfo is not None:
            _let_go(call.excinfo.tb)
        del call
        return True

    @pytest.hookimpl(optionalhook=True)
    def pytest_json_runtest_metadata(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> dict[str, Any] | None:
        """Give the JSON report our own account of a failure."""
        if call.excinfo is None:
            return None
        error: BaseException | None = call.excinfo.value
        item.stash[EVIDENCE].error = error
        while error is not None:
            error.__traceback__, error = None, error.__cause__ or error.__context__
        return {"failed_in": call.when}


def _let_go(trace: TracebackType) -> None:
    """Have the frames of a failure, which refer to themselves in circles, forget what they held."""
    for frame, _ in traceback.walk_tb(trace):
        with contextlib.suppress(RuntimeError):  # of a frame that still runs
            frame.clear()
            _ = frame.f_locals  # what pytest looked at is kept apart, and brought up to date here


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


@contextlib.contextmanager
def _bounded_memory() -> Iterator[None]:
    """Have a test fail that computes something huge from what a student returned."""
    if sys.platform != "linux":
        yield
        return
    import resource

    before = resource.getrlimit(resource.RLIMIT_AS)
    ceiling = mapped_bytes() + HEADROOM_BYTES
    if before[0] != resource.RLIM_INFINITY:
        ceiling = min(ceiling, before[0])
    resource.setrlimit(resource.RLIMIT_AS, (ceiling, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


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


def _is_plain(item: pytest.Function) -> bool:
    """Whether a test uses our fixtures alone, and no mark that is pytest's to heed."""
    marks = ("skip", "skipif", "xfail", "usefixtures")
    return (
        set(inspect.signature(item.obj).parameters) <= FIXTURES
        and set(item.fixturenames) <= FIXTURES | {"request"}
        and not any(item.get_closest_marker(mark) for mark in marks)
    )


ARGUMENTS: pytest.StashKey[tuple[str, ...]] = pytest.StashKey()
FIXTURES = {"student", "reference", "rng"}


class Suite:
    """The collected tests of some exercises."""

    def __init__(self, session: pytest.Session, results: _Results, course: Course) -> None:
        self._session, self._results, self.course = session, results, course
        self.items: dict[str, list[pytest.Item]] = {}
        for item in session.items:
            self.items.setdefault(pytest_plugin.exercise_of(item, course), []).append(item)
            if isinstance(item, pytest.Function) and _is_plain(item):
                item.stash[ARGUMENTS] = tuple(inspect.signature(item.obj).parameters)
        self.references = References(course)

    def run(self, examiner: SandboxExaminer, name: str) -> tuple[Outcome, ...]:
        """The outcomes of exercise `name`'s tests on what `examiner` examines."""
        config = self._session.config
        config.stash[EXAMINER] = examiner
        config.stash[FAILED] = set()
        items = self.items.get(name, [])
        for item in items:
            item.stash[EVIDENCE] = Evidence()
        try:
            entries = self._results.of(self._session, items)
            return tuple(
                outcome_of(entry, item, examiner.submission) for entry, item in zip(entries, items)
            )
        finally:
            for item in items:  # an error holds on to its test's tensors and answers
                del item.stash[EVIDENCE]
