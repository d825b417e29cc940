"""A warm pytest session: suites collected once, then run on one submission after another."""

from __future__ import annotations

import contextlib
import gc
import inspect
import itertools
import os
import sys
import traceback
from collections.abc import Callable, Collection, Iterator, Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from types import ModuleType
from typing import Any, Generic, TypeVar

import pytest
import torch
from pytest_jsonreport.plugin import JSONReport

from grader.course.course import Course
from grader.course.settings import read_bytes
from grader.errors import CourseError, GraderError, InternalError
from grader.grading import plugin
from grader.grading.environment import undisturbed
from grader.grading.examiner import SandboxExaminer, secrecy_of
from grader.grading.outcomes import EVIDENCE, Evidence, account_of, outcome_of, points_of
from grader.grading.programs import References
from grader.grading.suite_globals import SuiteGlobals
from grader.report import Outcome

if sys.platform == "linux":
    import resource

    from grader.sandbox.confinement.linux import mapped_bytes

T = TypeVar("T")

PYTEST_ARGUMENTS = (
    "--import-mode=importlib --assert=plain --noconftest --capture=no --tb=no --quiet "
    f"--disable-plugin-autoload --json-report-file=none --strict-markers -c{os.devnull} "
    "-pno:cacheprovider -pno:faulthandler -pno:logging -pno:threadexception "
    "-pno:unraisableexception -pno:warnings "
    "-ppytest_metadata.plugin -ppytest_jsonreport.plugin -pgrader.grading.plugin"
).split()
HEADROOM_BYTES = 2 * 1024**3  # bytes of memory for the trusted side, above those already mapped
OMIT = ["collectors", "log", "traceback", "streams", "warnings", "keywords"]


def collect_suites(course: Course, names: Sequence[str], body: Callable[[Suite], T]) -> T:
    """Collect the suites of `names` once; call `body` in pytest's loop, and return its result."""
    for name in names:
        if not course.suite(name).is_file():
            raise CourseError(f"{course.suite(name)} is missing", "grader build")
    torch.set_num_threads(1)
    loop = _SessionLoop(lambda session: body(_suite(session, course, names)))
    paths = [str(course.suite(name)) for name in names]
    # The second option keeps pytest from listing every folder above the course.
    root = course.held or course.root
    within = (f"--rootdir={root}", f"--confcutdir={root}")
    arguments = [*PYTEST_ARGUMENTS, *within, *paths]
    try:
        with undisturbed():
            code = pytest.main(arguments, plugins=[loop])
    finally:
        for name, module in list(sys.modules.items()):
            if getattr(module, "__file__", None) in paths:
                del sys.modules[name]  # so that the next session reads the suite again
    if loop.error is not None:
        raise loop.error
    if not loop.results:
        raise InternalError(f"pytest ended with code {code} before a suite could run")
    return loop.results[0]


def _suite(session: pytest.Session, course: Course, names: Sequence[str]) -> Suite:
    """Return the collected suite; raise `CourseError` if an exercise has no tests."""
    suite = Suite(session, course)
    for name in names:
        if not suite.items.get(name):
            raise CourseError(f"{course.suite(name)} has no tests", "grader validate")
        suite.points_of(name)  # raises if a mark is not a whole number
    return suite


def _said(error: BaseException, suite: Path) -> str:
    """Return the innermost cause of an error, and the last line of the suite on the way to it."""
    while error.__cause__ is not None:
        error = error.__cause__
    if isinstance(error, SyntaxError):
        return f"line {error.lineno}: {error.msg}"
    trace = traceback.extract_tb(error.__traceback__)
    lines = [f"line {frame.lineno}: " for frame in trace if frame.filename == str(suite)]
    return f"{lines[-1] if lines else ''}{type(error).__name__}: {error}"


class _SuiteModule(pytest.Module):
    """A suite that is loaded from its own text, and from nothing else.

    pytest itself would first import the packages around it, and load bytecode beside it.
    """

    def _getobj(self) -> ModuleType:
        parts = self.path.relative_to(self.config.rootpath).with_suffix("").parts
        module = ModuleType(".".join(parts))
        module.__file__ = str(self.path)
        code = compile(read_bytes(self.path), self.path, "exec", dont_inherit=True)
        sys.modules[module.__name__] = module  # dataclasses look up their module there
        try:
            exec(code, vars(module))
        except pytest.skip.Exception as error:
            if error.allow_module_level:
                raise
            raise self.CollectError("pytest.skip is called outside of a test") from error
        return module


class _SessionLoop(Generic[T]):
    """A pytest plugin that replaces pytest's own test loop."""

    def __init__(self, body: Callable[[pytest.Session], T]) -> None:
        self._body = body
        self.results: list[T] = []  # the body's result, once it has one
        self.error: BaseException | None = None

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        """Keep pytest from printing; the results go into its JSON report."""
        config.pluginmanager.unregister(name="terminalreporter")
        config.option.json_report_omit = OMIT

    def pytest_pycollect_makemodule(
        self, module_path: Path, parent: pytest.Collector
    ) -> pytest.Module:
        """Collect a suite from its text alone."""
        return _SuiteModule.from_parent(parent, path=module_path)

    def pytest_collect_directory(self, path: Path, parent: pytest.Collector) -> pytest.Directory:
        """Treat every folder as a plain one, so that no `__init__.py` of a course runs."""
        return pytest.Dir.from_parent(parent, path=path)

    def pytest_exception_interact(self, node: pytest.Item | pytest.Collector, call: Any) -> None:
        """Store the error of the first suite that does not collect."""
        if isinstance(node, pytest.Collector) and self.error is None:
            error = call.excinfo.value  # pytest's own error; its cause is the suite's
            self.error = CourseError(f"{node.nodeid} does not collect: {_said(error, node.path)}")

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """Refuse to grade if pytest left out tests."""
        if self.error is None:
            message = f"pytest left out {len(items)} tests, {items[0].nodeid} among them"
            self.error = InternalError(message, "env | grep -i pytest   shows what asks for that")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Call the body with the collected session; store its result or error."""
        if self.error is not None:
            return True
        gc.freeze()  # so that garbage collection skips the objects of torch and pytest
        try:
            with _bounded_memory():
                self.results.append(self._body(session))
        except BaseException as error:
            self.error = error
        finally:
            gc.unfreeze()
        return True

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        """Run a test with only our fixtures in one phase, in a third of pytest's time."""
        if ARGUMENTS not in item.stash:
            return None
        call = pytest.CallInfo.from_call(
            lambda: _examine(item),
            "call",
            # An error of the grader ends the run, instead of failing every test of every student.
            reraise=(KeyboardInterrupt, pytest.exit.Exception, GraderError),
        )
        report = item.ihook.pytest_runtest_makereport(item=item, call=call)
        item.ihook.pytest_runtest_logreport(report=report)
        if call.excinfo is not None:  # its frames form reference cycles that keep tensors alive
            traceback.clear_frames(call.excinfo.tb)
            for frame, _ in traceback.walk_tb(call.excinfo.tb):
                _ = frame.f_locals  # a snapshot of pytest's, which reading updates
        del call
        return True

    @pytest.hookimpl(optionalhook=True)
    def pytest_json_runtest_metadata(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> dict[str, Any] | None:
        """Put our account of a failure into the JSON report, and drop the failure itself."""
        if call.excinfo is None:
            return None
        error: BaseException | None = call.excinfo.value
        account = account_of(call.excinfo.value, item)
        while error is not None:
            error.__traceback__, error = None, error.__cause__ or error.__context__
        return account


@contextlib.contextmanager
def _bounded_memory() -> Iterator[None]:
    """Limit the memory of the block, so that a test which makes something huge fails."""
    mapped = None
    if sys.platform == "linux":
        with contextlib.suppress(PermissionError):  # a confined process has its limit already
            mapped = mapped_bytes()
    if mapped is None:
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_AS)
    ceilings = {mapped + HEADROOM_BYTES, before[0]} - {resource.RLIM_INFINITY}
    resource.setrlimit(resource.RLIMIT_AS, (min(ceilings), before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def _examine(item: pytest.Item) -> None:
    """Call a test function with the values of our fixtures."""
    plugin.pytest_runtest_setup(item)
    examiner = item.config.stash[plugin.EXAMINER]
    arguments = {name: getattr(examiner, name)(item) for name in item.stash[ARGUMENTS]}
    with contextlib.ExitStack() as stack:
        if "student" in arguments:
            arguments["student"] = stack.enter_context(arguments["student"])
        item.obj(**arguments)  # type: ignore[attr-defined]


def _is_plain(item: pytest.Function) -> bool:
    """Return whether a test uses only our fixtures, and no mark that pytest must handle."""
    marks = ("skip", "skipif", "xfail", "usefixtures")
    return (
        set(inspect.signature(item.obj).parameters) <= FIXTURES
        and set(item.fixturenames) <= FIXTURES | {"request"}
        and not any(item.get_closest_marker(mark) for mark in marks)
    )


def _in_order(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Return the tests in the order in which they run.

    First come the tests that others need, each after those that it needs itself; last come tests
    that students may not see. Raises `CourseError` for tests that need one another.
    """
    by_name = {item.name: item for item in items}
    needs = {
        name: [each for each in plugin.needs_of(item) if each in by_name]
        for name, item in by_name.items()
    }
    needed = {*itertools.chain(*needs.values())}
    try:
        sorted_by_needs = [*TopologicalSorter(needs).static_order()]
    except CycleError as error:
        says = f"{items[0].path}: these tests need one another: {', '.join(error.args[1])}"
        raise CourseError(says) from None
    first = [by_name[name] for name in sorted_by_needs if name in needed]
    return first + sorted((i for i in items if i.name not in needed), key=secrecy_of)


ARGUMENTS: pytest.StashKey[tuple[str, ...]] = pytest.StashKey()
FIXTURES = {"student", "reference", "rng", "cases"}


class Suite:
    """The collected tests of some exercises."""

    def __init__(self, session: pytest.Session, course: Course) -> None:
        self._session, self.course = session, course
        self.items: dict[str, list[pytest.Item]] = {}
        for item in session.items:
            self.items.setdefault(course.exercise_of(item.path), []).append(item)
            if isinstance(item, pytest.Function) and _is_plain(item):
                item.stash[ARGUMENTS] = tuple(inspect.signature(item.obj).parameters)
        self.references = References(course)
        self._globals = SuiteGlobals(session.items)
        self._report = JSONReport(session.config)
        session.config.pluginmanager.register(self._report)
        self._report.pytest_sessionstart(session)

    def points_of(self, name: str) -> int:
        """Return the sum of the points of exercise `name`'s tests."""
        return sum(map(points_of, self.items.get(name, [])))

    def run(
        self, examiner: SandboxExaminer, name: str, only: Collection[str] = ()
    ) -> tuple[Outcome, ...]:
        """Run exercise `name`'s tests on the code of `examiner`; return their outcomes.

        Run `only` the tests of these names, if any are given.
        """
        config = self._session.config
        config.stash[plugin.EXAMINER] = examiner
        config.stash[plugin.FAILED] = {}
        items = [item for item in self.items.get(name, []) if not only or item.name in only]
        for item in items:
            item.stash[EVIDENCE] = Evidence(examiner.submission)
        self._globals.restore(items)
        # Secret tests run last, so that no shown message can repeat their inputs.
        order = _in_order(items)
        outcomes = map(outcome_of, self._entries(order), order)
        by_item = dict(zip(order, outcomes))
        return tuple(by_item[item] for item in items)

    def _entries(self, items: Sequence[pytest.Item]) -> list[dict[str, Any]]:
        self._report._json_tests.clear()  # the results of the last run
        for item, following in zip(items, [*items[1:], None]):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        self._report.pytest_sessionfinish(self._session)
        return self._report.report["tests"]  # type: ignore[no-any-return]
