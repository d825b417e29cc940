"""The fixtures of the grader's own tests: the course, a tiny course, one zygote for all."""

from __future__ import annotations

import gc
import itertools
import os
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import browser
import pytest
from browser import Tab
from class_lists import COURSE
from classroom import Instant, Pools, hand_in
from commandline import Cli, Grade, Said
from feedback import Home
from forty import STUDENTS, batch
from marked_notebooks import written
from processor_time import ProcessorTime
from regrading import RIGHT, TWICE
from strangers import NAME, SOLUTION
from turns import left_for_another_turn
from warm import warm_popen

import grader.classroom.workers.pool
import grader.commands.validate
import grader.commands.work
from grader.__main__ import run
from grader.commands.trusted_courses import trust_folder
from grader.course.course import Course, load_course
from grader.grading.session import with_grader
from grader.printing import SYSTEMS
from grader.processes.child import ONE_THREAD, ChildProcess
from grader.report import ExerciseResult, Report
from grader.sandbox.confinement.limits import Confinement
from grader.sandbox.host.zygote import Zygote
from grader.submissions.submission import Submission

if TYPE_CHECKING:  # these import torch
    from grader.grading.grader import Grader
    from grader.grading.kept_trainings import Keeps
    from grader.sandbox.host.connection import WorkerConnection

ROOT = Path(__file__).parent.parent
if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    and threading.current_thread().name == "MainThread"
):
    # A shell has its background jobs ignore Ctrl-C, and so whatever they start.
    signal.signal(signal.SIGINT, signal.default_int_handler)
# Small tensors only wait for each other on several threads, and other tests for the cores.
os.environ |= ONE_THREAD
for name in SYSTEMS:  # a test that is about them sets them
    os.environ.pop(name, None)
os.environ.pop("PYTEST_ADDOPTS", None)  # meant for this run, not for those that tests start
ChildProcess.popen = warm_popen()  # an import of torch costs more than most tests
IN_MEMORY = Path("/dev/shm")  # if it has room: half of the time of some tests is that of a disk
if "TMPDIR" not in os.environ and IN_MEMORY.is_dir() and shutil.disk_usage(IN_MEMORY).free > 8e9:
    os.environ["TMPDIR"] = str(IN_MEMORY)
    tempfile.tempdir = None  # to be asked again
TINY = Path(__file__).parent / "tiny"
# No test reads or writes what the grader keeps for the user who runs it.
_STATE = tempfile.TemporaryDirectory(prefix="grader-state-of-tests-")
# The processes that share the tests begin with the environment of the first.
_USERS_CACHE = os.environ.setdefault("USERS_CACHE", os.environ.get("XDG_CACHE_HOME", ""))
os.environ["XDG_STATE_HOME"] = os.environ["XDG_CACHE_HOME"] = os.path.realpath(_STATE.name)
_caches = itertools.count()
trust_folder(TINY)
# Files that take long, longest first: the processes that share the tests begin with them.
LONG = (
    *("attacks", "validate", "accuracy", "pages", "students_copy", "mutants", "site", "project"),
    *("jupyter", "second_course", "spawned_workers", "secret_inputs", "examples", "dependence"),
    *("evasions", "naming", "trusted", "broken_rows", "bundle", "ci", "fuzz_more", "trusted_bytes"),
    *("gradescope_autograder", "kills", "watch", "cluster", "build", "seeds", "handing_out"),
    *("stopping", "trees", "kept_proofs", "training", "references", "check", "near_names"),
    *("diagnosis", "bad_input", "class_zips", "new", "trust", "confine", "full_disk", "failures"),
    *("prairielearn_autograder", "classroom50_autograder", "reader", "fuzz", "fuzz_files", "term"),
    *("environment", "import", "operator_page", "clones_of_a_class", "worker_failures"),
    *("dashboard",),
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what is asked of a whole run."""
    says = "keep what files take in CONTRIBUTING.md"
    parser.addoption("--keep-times", action="store_true", help=says)


def pytest_configure(config: pytest.Config) -> None:
    """Measure the run, where the system tells what processes take."""
    if sys.platform == "linux":
        config.pluginmanager.register(ProcessorTime({f"test_{name}" for name in LONG}))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run what takes long first, so that no process is left with it at the end."""
    if left := left_for_another_turn(items):
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in {*left}]
    order = {f"test_{name}": place for place, name in enumerate(LONG)}
    items.sort(key=lambda item: order.get(item.path.stem, len(order)))
    for item in items:
        if item.path.stem in order:
            item.add_marker("slow")


@pytest.fixture(autouse=True)
def freeze() -> None:
    """Spare the collector, which each grader calls first, what earlier tests have left."""
    gc.freeze()


@pytest.fixture(scope="session")
def course() -> Course:
    """The real course, with all its exercises."""
    return load_course(ROOT)


@pytest.fixture(scope="session")
def core(course: Course) -> Course:
    """The list of its exercises that commands take unless they are told another."""
    return course.choose()


@pytest.fixture(scope="session")
def solutions(course: Course) -> dict[str, str]:
    """The reference solution of every exercise."""
    return {name: course[name].read("solution.py") for name in course.names}


@pytest.fixture(scope="session")
def references(solutions: dict[str, str]) -> dict[str, ModuleType]:
    """Every reference solution as a module, by the exercise's name."""
    from reference_cases import loaded  # imports torch

    return {name: loaded(solutions, name) for name in solutions}


@pytest.fixture(scope="session")
def zygote() -> Iterator[Zygote]:
    """One zygote for the whole session: torch is imported once over there."""
    with Zygote() as started:
        yield started


@pytest.fixture
def connection(zygote: Zygote) -> Iterator[WorkerConnection]:
    """A connection to a worker, at its first test."""
    from grader.sandbox.host.connection import WorkerConnection
    from grader.sandbox.host.worker import Worker

    opened = WorkerConnection(lambda: Worker(zygote))
    opened.begin(1)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def tab() -> Iterator[Tab]:
    """A tab of Chromium; in CI, tests fail without it."""
    if browser.executable() is None and not os.environ.get("CI"):
        pytest.skip(browser.MISSING)
    with browser.started() as chromium:
        yield Tab(chromium)


@pytest.fixture
def student(connection: WorkerConnection) -> Any:
    """A few functions and a module that run in a worker."""
    from remote_code import student_at  # imports torch

    return student_at(connection)


@pytest.fixture(scope="session")
def tiny_course() -> Course:
    """A course of one exercise."""
    return load_course(TINY)


@pytest.fixture
def tiny_copy(tmp_path: Path) -> Path:
    """A copy of the tiny course that a test may change."""
    root = tmp_path / "tiny"
    shutil.copytree(TINY, root, ignore=shutil.ignore_patterns("__pycache__", ".grader"))
    trust_folder(root)
    return root


@pytest.fixture
def grade(zygote: Zygote) -> Grade:
    """Grade files (exercise name to text) in a course."""

    def grading(
        course: Course,
        files: Mapping[str, str] | Submission,
        *names: str,
        seed: int = 7,
        trainings: Keeps = "of this seed",
    ) -> Report:
        submission = files
        if not isinstance(files, Submission):
            submission = Submission("s001", files, {name: f"{name}.py" for name in files})
        chosen = names or course.names

        def body(grader: Grader) -> Report:
            return grader.grade(submission, chosen, seed).report

        # Other processes have worked out already what known mistakes answer.
        return with_grader(course, chosen, zygote, body, trainings=trainings)

    return grading


@pytest.fixture
def grade_tiny(grade: Grade, tiny_course: Course) -> Callable[[str], ExerciseResult]:
    """Grade one file text in the tiny course."""
    return lambda text: grade(tiny_course, {"scale": text}).exercises[0]


@pytest.fixture(scope="session")
def tiny_solution(tiny_course: Course) -> str:
    """The tiny course's reference solution."""
    return tiny_course["scale"].read("solution.py")


class _Shared:
    """Stands in for `Zygote`: gives commands the session's zygote, and leaves it running."""

    def __init__(self, zygote: Zygote) -> None:
        self._zygote = zygote

    def __call__(self, confinement: Confinement | None = None, *, ahead: bool = True) -> _Shared:
        return self

    def __enter__(self) -> Zygote:
        return self._zygote

    def __exit__(self, *exc: object) -> None:
        pass


@pytest.fixture(scope="session")
def pools() -> Iterator[Pools]:
    """Grading processes that are warmed up once for all tests."""
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
    monkeypatch.setattr(grader.classroom.workers.pool, "WorkerPool", pools)

    def running(*arguments: object) -> Said:
        capsys.readouterr()
        code = run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        print(captured.out, captured.err, sep="\n")  # shown in full if the test fails
        return Said(code, captured.out, captured.err)

    return running


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a test find nothing that another has worked out."""
    monkeypatch.setenv("XDG_CACHE_HOME", f"{os.path.realpath(_STATE.name)}/cache-{next(_caches)}")


@pytest.fixture
def users_cache(own_cache: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have what is proven of the course's own programs kept for the next run, and taken from there.

    What is kept is found by all that it depends on, so a test says the same with it and without.
    """
    monkeypatch.setenv("XDG_CACHE_HOME", _USERS_CACHE)  # where it is empty, in the home


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """What no copy of a course may write."""
    return tmp_path / "outside"


@pytest.fixture
def attack(outside: Path) -> str:
    """Code that writes a file if it runs unconfined, and goes on."""
    return f"\ntry:\n    open({str(outside)!r}, 'w').close()\nexcept OSError:\n    pass\n"


@pytest.fixture
def clone(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the course that another person has, with a right solution; the current folder."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "theirs"))
    cli("init", tmp_path / "s017")
    shutil.copy(SOLUTION, tmp_path / "s017" / "exercises" / f"{NAME}.py")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "mine"))
    monkeypatch.chdir(tmp_path / "s017")
    return tmp_path / "s017"


@pytest.fixture
def imported(cli: Cli, tmp_path: Path) -> Callable[..., Course]:
    """Import cells with `grader import`; return the course."""

    def importing(format_: str, *cells: Any) -> Course:
        path = written(tmp_path / "notebook.ipynb", *cells)
        said = cli("import", format_, path, "--course", tmp_path / "course")
        assert said.code == 0, said.err
        return load_course(tmp_path / "course")

    return importing


@pytest.fixture
def instant(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Instant:
    """An engine that answers at once, for what is not about grading itself."""
    engine = Instant()
    monkeypatch.setattr(grader.classroom.workers.pool, "WorkerPool", engine)
    return engine


@pytest.fixture
def home(cli: Cli, instant: Instant, tmp_path: Path) -> Home:
    """A class whose feedback goes home, graded by an engine that answers at once."""
    return Home(cli, tmp_path)


@pytest.fixture
def forty(tmp_path: Path) -> Path:
    """Forty submissions, no two alike, each with a good deal of text."""
    more = "x = 1  # padding\n" * 50
    texts = {f"{name}/scale.py": f"# {n % 9} points\n# {name}\n" for n, name in enumerate(STUDENTS)}
    return hand_in(tmp_path / "class", {place: text + more for place, text in texts.items()})


@pytest.fixture(scope="session")
def kept() -> dict[str, bytes]:
    """What comes out the same in every test, by the fixture that has worked it out."""
    return {}


@pytest.fixture
def whole(cli: Cli, instant: Instant, forty: Path, kept: dict[str, bytes]) -> bytes:
    """The marks of a run that nothing stops."""
    if "whole" not in kept:
        batch(cli, forty, "whole")
        instant.jobs.clear()
        kept["whole"] = (forty.parent / "whole" / "grades.csv").read_bytes()
    return kept["whole"]


@pytest.fixture
def pair(tiny_copy: Path) -> Path:
    """A course of two exercises, `scale` of 8 points and `shift` of 2."""
    folder = tiny_copy / "reference" / "shift"
    folder.mkdir()
    (folder / "exercise.toml").write_text(
        'title = "Shift"\nsummary = "Add a number."\norder = 2\npoints = 2\n'
        'implements = ["shift"]\nhints = ["Add.", "Use +.", "x + by"]\n'
        "call_seconds = 60\nexercise_seconds = 600\n"
    )
    (folder / "solution.py").write_text(
        '"""Reference solution: shifting."""\n\n\ndef shift(x, by):\n    """x plus by."""\n'
        "    # --- solution\n    return x + by\n    # --- end\n"
    )
    (folder / "statement.md").write_text("Write `shift(x, by)`.\n")
    (folder / "mistakes.toml").write_text("")
    (folder / "test_hidden.py").write_text(
        "import pytest\n\n\n@pytest.mark.points(2)\ndef test_shifts(student):\n"
        '    """One and one is two."""\n    assert student.shift(1, 1) == 2\n'
    )
    settings = tiny_copy / "reference" / "course.toml"
    settings.write_text('title = "A pair"\npoints = 10\n')
    return tiny_copy


@pytest.fixture
def strict(tiny_copy: Path) -> Path:
    """A course in which each day of delay costs a quarter."""
    settings = tiny_copy / "reference" / "course.toml"
    settings.write_text(f"{COURSE}[late]\nper_day = 25\n")
    return tiny_copy


@pytest.fixture
def zeros(tiny_copy: Path) -> Path:
    """A course that gives 0 points for nothing, so that nobody may be missing by mistake."""
    (tiny_copy / "reference" / "course.toml").write_text(f"{COURSE}missing = 0\n")
    return tiny_copy


@pytest.fixture
def handed_in(tmp_path: Path) -> Path:
    """Four students; of `s003`, who takes an odd way, the first suite notices nothing."""
    folder = tmp_path / "class"
    for student, shift in (("s001", RIGHT), ("s002", TWICE), ("s003", TWICE), ("s004", None)):
        hand_in(folder, {f"{student}/scale.py": f"# {student[-1]} points\n"})
        if shift is not None:
            hand_in(folder, {f"{student}/shift.py": f"{shift}# {student}\n"})
    return folder
