"""`grader check`: from what was typed to a report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.course.course import Course, find_course
from grader.errors import RequestError
from grader.commands.memory import Checked, Progress
from grader.report import Report
from grader.grading.reporter import fresh_seed
from grader.sandbox.confinement.layers import Confinement, Isolation
from grader.sandbox.host.zygote import Zygote
from grader.submissions.submission import Submission, discover
from grader.course.visibility import for_student


@dataclass(frozen=True)
class Request:
    """What to check: a submission, and which of the course's exercises."""

    course: Course
    submission: Submission
    names: tuple[str, ...]
    paths: tuple[Path, ...]

    def again(self) -> Submission:
        """The submission as its files are now."""
        return discover(self.paths, self.course)

    @property
    def folders(self) -> list[Path]:
        """The folders in which its files lie."""
        files = (Path(path) for path in self.submission.paths.values())
        return sorted({file.parent for file in files})


def understand(targets: Sequence[str], course_folder: Path | None) -> Request:
    """Exercise names, files and folders, sorted out; raises `RequestError` for anything else."""
    course = find_course(course_folder or Path.cwd())
    names = [t for t in targets if t in course.names and not _is_path(t)]
    paths = [Path(t) for t in targets if t not in names]
    if not paths:
        paths = [students_folder(course)]
    submission = discover(paths, course)
    if not names:
        files_only = all(path.is_file() for path in paths)
        names = list(submission.paths) if files_only else list(course.names)
    chosen = tuple(name for name in course.names if name in names)
    return Request(course, submission, chosen, tuple(paths))


def _is_path(target: str) -> bool:
    return "/" in target or target.endswith(".py")


def students_folder(course: Course) -> Path:
    """The current folder if it holds exercises, else the course's own."""
    here = Path.cwd()
    if any((here / f"{name}.py").is_file() for name in course.names):
        return here
    return course.student_folder


def own_work(course: Course) -> Submission:
    """The files of whoever works here; none is no error."""
    try:
        return discover([students_folder(course)], course)
    except RequestError:
        return Submission("own work", {})


def check(
    request: Request,
    seed: int | None = None,
    progress: Callable[[str], None] = lambda name: None,
    isolation: Isolation = "process",
) -> Report:
    """Grade the request; the report is what its student may see.

    `progress` is told each exercise before it is graded.
    """
    # The zygote imports torch over there while the next lines import it here.
    with Zygote(Confinement(isolation)) as zygote:
        from grader.grading.grader import with_slot

        seed = fresh_seed() if seed is None else seed
        report = with_slot(
            request.course,
            request.names,
            zygote,
            lambda slot: slot.grade(request.submission, request.names, seed, progress),
        )
    shown = for_student(report, request.course.policy)
    remember(request.course, request.submission, shown)
    return shown


def remember(course: Course, submission: Submission, report: Report) -> None:
    """Keep what was found for `grader status` and `grader hint`."""
    files, paths = submission.files, submission.paths
    found = {}
    for result in report.exercises:
        if result.name in files:
            hint = result.diagnosis.hint if result.diagnosis else ""
            checked = Checked(result.points, result.max_points, hint)
            found[Path(paths[result.name])] = files[result.name], checked
    Progress(course.root).remember(found)


def hints_for(course: Course, name: str, work: Submission) -> list[str]:
    """An exercise's hints, from a nudge to nearly the answer.

    First of all comes the one that fits the mistake which the last check found in this very file.
    """
    hints = list(course[name].hints)
    if name in work.files:
        last = Progress(course.root).checked(Path(work.paths[name]), work.files[name])
        if last is not None and last.hint:
            return [last.hint, *hints]
    return hints
