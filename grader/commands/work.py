"""A student's own work: its files, its report, and the results of its last check."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.commands.memory import LastCheck, Memory
from grader.course.course import Course
from grader.course.stubs import is_untouched, make_stub
from grader.course.visibility import for_student
from grader.errors import RequestError
from grader.grading.seeds import fresh_seed
from grader.grading.session import with_grader
from grader.report import Report
from grader.sandbox.cells import NOTEBOOK
from grader.sandbox.confinement.layers import Confinement, Isolation
from grader.sandbox.host.zygote import Zygote
from grader.submissions.reader.host import readers
from grader.submissions.submission import Submission, discover


@dataclass(frozen=True)
class CheckRequest:
    """What to check: a submission, and which of the course's exercises."""

    course: Course
    submission: Submission
    names: tuple[str, ...]
    paths: tuple[Path, ...]

    def read_again(self) -> Submission:
        """Return the submission as its files are now."""
        return discover(self.paths, self.course)

    @property
    def folders(self) -> list[Path]:
        """The folders that hold its files."""
        return sorted({Path(path).parent for path in self.submission.paths.values()})


def parse_targets(
    targets: Sequence[str], course: Course, *, following: bool = False
) -> CheckRequest:
    """Sort exercise names from files and folders; raise `RequestError` for anything else.

    Without targets, take all exercises; only the next one that does not pass, if `following`.
    """
    names = [Path(t).stem for t in targets if _means_exercise(t, course)]
    paths = [Path(t) for t in targets if not _means_exercise(t, course)]
    if not paths:
        paths = [students_folder(course)]
    submission = discover(paths, course)
    if not targets and following and (name := next_exercise(course, submission)):
        names = [name]
    if not names:
        files_only = all(path.is_file() for path in paths)
        names = list(submission.paths) if files_only else list(course.names)
    chosen = tuple(name for name in course.names if name in names)
    return CheckRequest(course, submission, chosen, tuple(paths))


def students_folder(course: Course) -> Path:
    """Return the current folder if it holds exercises, else the course's own."""
    here = Path.cwd()
    if any((here / f"{name}.py").is_file() for name in course.names):
        return here
    return course.student_folder


def own_work(course: Course) -> Submission:
    """Return the student's own files; an empty submission if there are none."""
    try:
        return discover([students_folder(course)], course)
    except RequestError:
        return Submission("own work", {})


@contextlib.contextmanager
def starting(isolation: Isolation) -> Iterator[Zygote]:
    """Start the processes that read and run the work; yield the one that runs it.

    They import what they need while the block looks for the submission.
    """
    readers().start()
    with Zygote(Confinement(isolation)) as zygote:
        yield zygote


def check(
    request: CheckRequest,
    zygote: Zygote,
    seed: int | None = None,
    on_exercise: Callable[[str], None] = lambda name: None,
) -> Report:
    """Return the report that the student may see; call `on_exercise` before each exercise."""
    submission, names = request.submission, request.names
    seed = fresh_seed() if seed is None else seed
    report = with_grader(
        request.course,
        names,
        zygote,
        lambda grader: grader.grade(submission, names, seed, on_exercise).report,
        keep_answers=True,
    )
    visible = for_student(report, request.course.policy)
    remember(request.course, submission, visible)
    return visible


def remember(course: Course, submission: Submission, report: Report) -> None:
    """Keep the results for `grader status` and `grader hint`."""
    files, paths = submission.files, submission.paths
    checks = {}
    for result in report.exercises:
        if result.name in files:
            hint = result.diagnosis.hint if result.diagnosis else ""
            last = LastCheck(result.points, result.passed, hint)
            checks[Path(paths[result.name])] = files[result.name], last
    Memory(course.root).remember(checks)


def last_check(course: Course, name: str, work: Submission) -> LastCheck | None:
    """Return the last check of an exercise; None if its file has changed since."""
    if name not in work.files:
        return None
    return Memory(course.root).last_check(Path(work.paths[name]), work.files[name])


def next_exercise(course: Course, work: Submission) -> str:
    """Return the exercise to go on with: the first that was begun, else the first.

    Those that have passed as they are now do not count; empty if all have.
    """
    left = []
    for exercise in course.exercises:
        last = last_check(course, exercise.name, work)
        if last is None or not last.passed:
            left.append(exercise)
    begun = (e for e in left if not is_untouched(work.files.get(e.name, ""), make_stub(e)))
    return next((exercise.name for exercise in (*begun, *left)), "")


def exercise_named(course: Course, text: str) -> str:
    """Return the exercise of a name, or of a file of that name; raises `RequestError`."""
    return Path(text).stem if _means_exercise(text, course) else course[text].name


def _means_exercise(target: str, course: Course) -> bool:
    """Return whether a target is the name of an exercise, or of its file in another folder."""
    path = Path(target)
    is_file = path.suffix in ("", ".py", NOTEBOOK) and path.stem in course.names
    return target in course.names or (is_file and not path.exists())


def hints_for(course: Course, name: str, work: Submission) -> list[str]:
    """Return an exercise's hints; the hint on the mistake that the last check named comes first."""
    hints = list(course[name].hints)
    last = last_check(course, name, work)
    return [last.hint, *hints] if last is not None and last.hint else hints
