"""A submission: the text of its exercise files, and notes on what was left out."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from grader.course.course import Course
from grader.errors import RequestError
from grader.submissions.archives import ZIP_AGAIN, UnreadableArchive, is_zip, unpacked
from grader.submissions.exercise_files import find_exercise_files, read_code
from grader.submissions.notes import printable_name, shortened


@dataclass(frozen=True)
class Submission:
    """The text of each exercise file, by exercise name.

    `paths` holds where each file was found, `problems` why the file of an exercise cannot be used.
    """

    name: str
    files: Mapping[str, str]
    paths: Mapping[str, str] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def hash(self) -> str:
        """A hash over the names and texts of the files."""
        digest = hashlib.sha256()
        for name, text in sorted(self.files.items()):
            digest.update(f"{name}\0{len(text)}\0{text}".encode("utf-8", "replace"))
        return digest.hexdigest()[:32]


def discover(paths: Sequence[Path], course: Course, *, inside: bool = False) -> Submission:
    """Read the submission in `paths`: exercise files, or folders or zips that hold them.

    A single file with another name is used for every exercise of which it defines something. The
    submission's `paths` start with the given path or, with `inside`, in the folder that holds the
    exercises. Raises `RequestError` if no exercise is found, or one of them twice.
    """
    files: dict[str, str] = {}
    places: dict[str, str] = {}
    problems: dict[str, str] = {}
    notes: list[str] = []
    for path in paths:
        with _opened(path, notes) as opened:
            for name, file in find_exercise_files(opened, course, notes).items():
                at = _inside(file) if inside else path / file.relative_to(opened)
                place = printable_name(str(at))
                if name in places:
                    raise RequestError(
                        f"{name} is given twice: {places[name]} and {place}",
                        "grader check PATH   with one submission at a time",
                    )
                places[name] = place
                text, problem = read_code(file)
                (problems if problem else files)[name] = problem or text
    notes = shortened(notes)
    if not places:
        where = ", ".join(map(str, paths))
        raise RequestError(
            "; ".join([f"no exercise file in {where}", *notes]),
            f"a submission holds files such as {course.names[0]}.py",
        )
    return Submission(_name_of(paths[0]), files, places, problems, tuple(notes))


def _inside(file: Path) -> PurePath:
    return PurePath(*file.parts[-2 if file.name == "solution.py" else -1 :])


@contextlib.contextmanager
def _opened(path: Path, notes: list[str]) -> Iterator[Path]:
    if not is_zip(path) or not path.is_file():
        yield path
        return
    try:
        with unpacked(path, notes) as folder:
            yield folder
    except UnreadableArchive as error:
        raise RequestError(f"{path}: {error}", ZIP_AGAIN) from None


def _name_of(path: Path) -> str:
    path = path.absolute()
    if path.suffix == ".zip":
        return printable_name(path.stem)
    return printable_name(path.name if path.is_dir() else path.parent.name)
