"""A student's own work: its files, its report, and the results of its last check."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from grader.commands.memory import LastCheck, Memory
from grader.commands.options import short_path
from grader.commands.trusted_courses import files_of, first_note_on, memory_folder, remember_note_on
from grader.course.course import (
    PUBLIC_COURSE,
    Course,
    find_course,
    has_course,
    load_public,
    packaged_course,
)
from grader.course.policy import CourseList
from grader.course.stubs import is_untouched, make_stub, untouched_text
from grader.course.visibility import for_student
from grader.errors import CourseError, RequestError
from grader.grading import reporter
from grader.grading.confined_grader import ConfinedGrader, why_not_here
from grader.grading.seeds import fresh_seed
from grader.grading.session import with_grader
from grader.report import Report, separate_hints
from grader.sandbox.cells import NOTEBOOK
from grader.sandbox.confinement.limits import Confinement, Isolation
from grader.sandbox.host.source import WorkerSource
from grader.sandbox.host.spawned_workers import SpawnedWorkers
from grader.sandbox.host.starting import start_method
from grader.submissions.code_files import MAX_BYTES
from grader.submissions.notes import MAX_NAMED, NEEDS_REVIEW, shortened
from grader.submissions.reader.host import readers
from grader.submissions.reader.spawned import SpawnedReaders
from grader.submissions.submission import Submission, discover
from grader.trees import NotOpened, read_file

if sys.platform != "win32":
    from grader.sandbox.host.zygote import Zygote

if TYPE_CHECKING:
    from grader.grading.grader import Grader, OnProgress
    from grader.grading.kept_trainings import Keeps

    AnyGrader = Grader | ConfinedGrader

T = TypeVar("T")
NO_EXERCISE = "is not an exercise file"  # in the note on a file that was left out
IMPORTED = "These tests were imported. They run confined until `grader trust` has shown them."


@dataclass(frozen=True)
class CheckRequest:
    """A request to check some of the course's exercises in a submission."""

    course: Course
    submission: Submission
    names: tuple[str, ...]
    paths: tuple[Path, ...]

    def read_again(self) -> Submission:
        """Return the submission as its files are now."""
        return own_files(self.paths, self.course)

    @property
    def folders(self) -> list[Path]:
        """The folders that hold its files."""
        return sorted({Path(path).parent for path in self.submission.paths.values()})


def parse_targets(
    targets: Sequence[str], course: Course, *, following: bool = False
) -> CheckRequest:
    """Separate exercise names from files and folders; raise `RequestError` for anything else.

    Without targets, take all exercises, or, with `following`, the next one that does not pass.
    """
    for target in targets:
        _refuse_of_other_list(Path(target).stem, course)
    names = [Path(t).stem for t in targets if _means_exercise(t, course)]
    paths = [Path(t) for t in targets if not _means_exercise(t, course)]
    if not paths:
        paths = [students_folder(course)]
    submission = own_files(paths, course)
    if beside := list(_required_beside(paths, submission, course)):
        own = set(submission.paths)
        submission = own_files([*paths, *beside], course)
        names = names or list(own)
        paths = [*paths, *beside]
    if not targets and following and (name := next_exercise(course, submission)):
        names = [name]
    if not names:
        files_only = all(path.is_file() for path in paths)
        names = list(submission.paths) if files_only else list(course.names)
    chosen = tuple(name for name in course.names if name in names)
    if [path.resolve() for path in paths] == [students_folder(course).resolve()]:
        notes = (*submission.notes, *_on_missing(submission, chosen))
        submission = replace(submission, notes=notes)
    return CheckRequest(course, submission, chosen, tuple(paths))


def _on_missing(submission: Submission, names: Sequence[str]) -> Iterator[str]:
    """Yield a note on the files that are missing among a student's own, if there are any."""
    missing = [name for name in names if name not in {*submission.files, *submission.problems}]
    if missing:
        *files, last = shortened([f"{name}.py" for name in missing], MAX_NAMED)
        are = f"{', '.join([*files, last])} {'is' if len(missing) == 1 else 'are'} missing"
        yield f"{are}: `{reset_of(missing[0])}` writes the stub again"


def reset_of(name: str) -> str:
    """Return the command that writes the stub of an exercise."""
    return f"grader reset {name}"


def _refuse_of_other_list(name: str, course: Course) -> None:
    """Raise `RequestError` if another list of the course has an exercise."""
    course.refuse_of_other_list(name)
    if name in course.names:
        return
    for other, listed in _lists_beside(course).items():
        if name in listed.exercises:
            problem = f"this copy has the list `{course.chosen}`, which is without `{name}`"
            raise RequestError(problem, _way_to_list(other, course))


def _lists_beside(course: Course) -> Mapping[str, CourseList]:
    """Return the lists of a course; of a copy of one list, those with all of its exercises.

    Such a copy does not know the others, but the grader brings its own course along.
    """
    if course.lists or not course.chosen:
        return course.lists
    with contextlib.suppress(RequestError):  # a grader may come without exercises
        known = packaged_course().lists
        return {name: it for name, it in known.items() if {*course.names} <= {*it.exercises}}
    return {}


def _way_to_list(name: str, course: Course) -> str:
    """Return how to work on another list, whose exercises a copy of one list does not have."""
    if course.lists:
        return f"--course-list {name}"
    where = course.root.absolute()
    folder = short_path(where) if where != Path.cwd() else "."
    return f"grader init {folder} --course-list {name}"


def _required_beside(
    paths: Sequence[Path], submission: Submission, course: Course
) -> Iterator[Path]:
    """Yield the files beside the checked ones that hold the exercises which these require."""
    found = set(submission.paths)
    needed = set().union(*(course.needed(name) for name in found)) - found
    folders = {path.parent for path in paths if path.suffix == ".py"}
    for folder in sorted(folders) if all(map(Path.is_file, paths)) else ():
        yield from filter(Path.is_file, (folder / f"{name}.py" for name in sorted(needed)))


def own_files(paths: Sequence[Path], course: Course) -> Submission:
    """Return a student's files at some places, with the notes that a student needs.

    No note asks for a review here. And if an exercise outside the course's folder is checked, a
    note names it, because the student may mean the course's own file.
    """
    try:
        found = discover(paths, course)
    except RequestError:
        _refuse_other_course(paths, course)
        raise
    notes = [note.removesuffix(NEEDS_REVIEW) for note in found.notes]
    notes = shortened([*_without_other_lists(notes, course)])
    for path in paths:
        if has_course(path) and path.resolve() != course.root.resolve():
            notes.append(f"the course in {course.root} grades this, not the one in {path}")
    if list(paths) == [Path.cwd()]:
        for name in found.paths:
            usual = course.student_folder / f"{name}.py"
            used = Path(found.paths[name])
            if usual.is_file() and usual.resolve() != used.resolve():
                notes.append(f"{used.name} in this folder is checked, not {_from_here(usual)}")
    return replace(found, notes=tuple(notes))


def _refuse_other_course(paths: Sequence[Path], course: Course) -> None:
    """Raise `RequestError` if the files lie in a copy of a course with other exercises."""
    for root in (root for path in paths for root in (path, path.absolute().parent)):
        if not (root / "exercises" / PUBLIC_COURSE).is_file():
            continue
        with contextlib.suppress(CourseError):
            other = load_public(root)
            if not set(other.names) & set(course.names):
                source = "the bundle" if course.sealed else "the course"
                problem = f"{source} is “{course.title}”, and these files are of “{other.title}”"
                raise RequestError(problem, f"{source} with {other.names[0]}")


def _without_other_lists(notes: Iterable[str], course: Course) -> Iterator[str]:
    """Yield notes, but one alone on files of exercises that another list of the course has."""
    found: dict[str, list[str]] = {}
    known = _lists_beside(course)
    for note in notes:
        stem = note.partition(f" {NO_EXERCISE}")[0].strip("`").rpartition(".")[0]
        if lists := [name for name, each in known.items() if stem in each.exercises]:
            found.setdefault(lists[0], []).append(stem)
        else:
            yield note
    for name, stems in found.items():
        files = f"{stems[0]}.py is" if len(stems) == 1 else f"{len(stems)} files are"
        yield f"{files} of the list `{name}` and left out: {_way_to_list(name, course)}"


def _from_here(path: Path) -> str:
    with contextlib.suppress(ValueError):
        return str(path.relative_to(Path.cwd()))
    return str(path)


def students_folder(course: Course) -> Path:
    """Return the current folder if it holds exercises, else the course's own."""
    here = Path.cwd()
    if any((here / f"{name}.py").is_file() for name in course.names):
        return here
    if not course.student_folder.is_dir():  # the course is elsewhere, and has no student's work
        with contextlib.suppress(RequestError):
            return find_course(here).student_folder
    return course.student_folder


def own_work(course: Course) -> Submission:
    """Return the student's own files; an empty submission if there are none."""
    start_method()  # an unreadable folder is not the same as no files
    try:
        return own_files([students_folder(course)], course)
    except RequestError:
        return Submission("own work", {})


def may_be_begun(targets: Sequence[str], course: Course) -> bool:
    """Return whether some of the work may be more than stubs, by a look at the usual files."""
    if not {*targets} <= {*course.names}:
        return True
    folder = students_folder(course)
    for name in targets or course.names:
        try:
            text = read_file(folder / f"{name}.py", folder, MAX_BYTES).decode("utf-8", "replace")
        except (OSError, NotOpened):
            return True
        if not is_untouched(text, untouched_text(course[name])):
            return True
    return False


@contextlib.contextmanager
def starting(
    isolation: Isolation, *, again: bool = False, begun: bool = True
) -> Iterator[WorkerSource]:
    """Start the processes that read and run the work; yield the source of workers.

    They import their modules while the block looks for the submission. If probably nothing is
    `begun`, the source starts when it is needed. With `again`, the next spawned processes get ready
    between two gradings.
    """
    confinement = Confinement(isolation)
    if sys.platform != "win32" and start_method() == "fork":
        readers().start()
        with Zygote(confinement, ahead=begun) as zygote:
            yield zygote
    else:
        spawned = readers()
        assert isinstance(spawned, SpawnedReaders)
        spawned.start()
        spawned.ahead = again
        workers = SpawnedWorkers(confinement, ahead=begun, again=again)
        with contextlib.closing(spawned), workers as source:
            yield source


def check(
    request: CheckRequest,
    workers: WorkerSource,
    seed: int | None = None,
    on_exercise: OnProgress = lambda name, note="": None,
) -> Report:
    """Return the report that the student may see; call `on_exercise` with the progress."""
    submission, names = request.submission, request.names
    trainings = keeps_of(seed)
    seed = fresh_seed() if seed is None else seed
    report = graded_by(
        request.course,
        names,
        workers,
        lambda grader: grader.grade(submission, names, seed, on_exercise).report,
        trainings,
    )
    visible = for_student(report, request.course.policy)
    remember(request.course, submission, visible)
    return visible


def unbegun(request: CheckRequest, seed: int | None = None) -> Report | None:
    """Return the report on work in which nothing was begun; None if there is something to grade.

    Nothing runs for it, and nothing imports torch.
    """
    course, submission = request.course, request.submission
    found = [reporter.unbegun(course, submission, name) for name in request.names]
    results = [result for result in found if result is not None]
    if len(results) < len(found):
        return None
    seed = fresh_seed() if seed is None else seed
    report = reporter.Reporter(course).report(submission, results, seed, ())
    visible = for_student(report, course.policy)
    remember(course, submission, visible)
    return visible


def graded_by(
    course: Course,
    names: Sequence[str],
    workers: WorkerSource,
    body: Callable[[AnyGrader], T],
    trainings: Keeps,
) -> T:
    """Return the result of `body` for a grader, a confined one for code that nobody here has read.

    Nobody has read the code of an untrusted course, nor an exercise from `grader import`.

    Raises `RequestError` if this machine cannot confine it.
    """
    unreviewed = course.unreviewed(names)
    if course.trusted and not unreviewed:
        return with_grader(course, names, workers, body, trainings=trainings)
    if why := why_not_here():
        problem = f"the tests in {course.root} are new here, and cannot be confined ({why})"
        raise RequestError(
            problem,
            f"grader trust {course.root}   shows them, and asks once",
        )
    files = files_of(course).contents
    note = IMPORTED if course.trusted else first_note_on(course)
    with ConfinedGrader(course, files, names, workers, note) as grader:
        result = body(grader)
    remember_note_on(course)
    return result


def memory_of(course: Course) -> Memory:
    """Return the memory of a student's work with a course."""
    return Memory(memory_folder(course))


def keeps_of(seed: int | None) -> Keeps:
    """Return which trainings a check reuses: with a `seed`, only those of the same seed."""
    return "of any seed" if seed is None else "of this seed"


def remember(course: Course, submission: Submission, report: Report) -> None:
    """Keep the results for `grader status` and `grader hint`."""
    files, paths = submission.files, submission.paths
    checks = {}
    for result in report.exercises:
        if result.name in files:
            hint = result.diagnosis.hint if result.diagnosis else ""
            last = LastCheck(result.points, result.passed, hint)
            checks[Path(paths[result.name])] = files[result.name], last
    memory_of(course).remember(checks)


def last_checks(course: Course, work: Submission) -> dict[str, LastCheck]:
    """Return the last check of each exercise whose file has not changed since."""
    memory = memory_of(course)
    found = {
        name: memory.last_check(Path(work.paths[name]), work.files[name]) for name in work.files
    }
    return {name: last for name, last in found.items() if last is not None}


def next_exercise(course: Course, work: Submission) -> str:
    """Return the next exercise: the first that was begun, else the first.

    Exercises that pass in their current state are left out; empty if all pass.
    """
    passed = {name for name, last in last_checks(course, work).items() if last.passed}
    left = [exercise for exercise in course.exercises if exercise.name not in passed]
    begun = (e for e in left if not is_untouched(work.files.get(e.name, ""), make_stub(e)))
    return next((exercise.name for exercise in (*begun, *left)), "")


def exercise_named(course: Course, text: str) -> str:
    """Return the exercise for a name or for a file of that name; raises `RequestError`."""
    return Path(text).stem if _means_exercise(text, course) else course[text].name


def _means_exercise(target: str, course: Course) -> bool:
    """Return whether a target is the name of an exercise, or its file in another folder."""
    path = Path(target)
    is_file = path.suffix in ("", ".py", NOTEBOOK) and path.stem in course.names
    return target in course.names or (is_file and not path.exists())


def hints_for(course: Course, name: str, work: Submission) -> list[str]:
    """Return an exercise's hints, first those on mistakes that the last check named."""
    hints = list(course[name].hints)
    last = last_checks(course, work).get(name)
    return [*separate_hints(last.hint), *hints] if last is not None else hints
