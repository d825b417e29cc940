"""`grader new`: write an exercise to start from."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from grader.commands.bringing import templates, write_file
from grader.commands.options import COURSE_FOLDER, short_path
from grader.commands.trusted_courses import trust_folder
from grader.course.course import EXERCISE_FILE, SETTINGS, course_in, load_course
from grader.course.exercise_names import EXAMPLE, naming_problem
from grader.errors import RequestError
from grader.submissions.notes import printable_text

STAGE = "centred"  # the placeholder for the variable of the solution in the new files
COURSE_FILE = Path(SETTINGS).name
POINTS = 4  # of a new exercise
MINUTES = 10  # of work on it
ELSEWHERE = "--course DIR"
TITLE = "TODO: a title"
NO_TEXTS: Mapping[str, object] = {
    "summary": "TODO: what it teaches, in one sentence.",
    "idea": "TODO: what the solution does, for whoever has solved it.",
    "hints": (
        "TODO: a question that leads to the idea",
        "TODO: the step after it",
        "TODO: nearly the answer",
    ),
}


@click.command()
@click.argument("name")
@COURSE_FOLDER("root")
def new(name: str, root: Path | None) -> int:
    """Write an exercise to start from; `grader validate NAME` lists what is left to do.

    In a folder without a course, a course begins with it. If the folder is inside
    another course, name it with --course.
    """
    refuse_name(name, f"grader new {EXAMPLE}")
    place = find_place(root)
    place.refuse_existing(name, "choose another name")
    if place.is_new:
        place.begin_course(points=POINTS)
    place.write(name, new_texts(name, place.order))
    click.echo(f"wrote {short_path(place.folder(name))}: its files are an example, to be replaced")
    place.tell_untrusted()
    place.tell_lists([name])
    option = "" if root is None else f" --course {short_path(root)}"
    click.echo(f"\n  grader validate {name}{option}   lists what is left to do")
    return 0


def new_texts(name: str, order: int) -> dict[str, str]:
    """Return the texts of a new exercise, by the names of its files."""
    made = templates("new_files")
    texts = {EXERCISE_FILE: settings_text(order, TITLE, POINTS, [name], STAGE, minutes=MINUTES)}
    others = {*made.list_templates()} - {f"{COURSE_FILE}.j2", f"{EXERCISE_FILE}.j2"}
    for template in sorted(others):
        text = made.get_template(template).render(name=name, stage=STAGE)
        texts[template.removesuffix(".j2")] = text
    return texts


def can_name_module(name: str) -> bool:
    """Return whether an exercise can have this name, by which students import it."""
    return not naming_problem(name)


def refuse_name(name: str, remedy: str) -> None:
    """Raise `RequestError` if no exercise can have this name."""
    if problem := naming_problem(name):
        raise RequestError(f"`{printable_text(name)}` {problem}", remedy)


def settings_text(
    order: int,
    title: str,
    points: int,
    implements: Sequence[str],
    stage: str,
    requires: Sequence[str] = (),
    texts: Mapping[str, object] = NO_TEXTS,
    minutes: int | None = None,
) -> str:
    """Return the `exercise.toml` of a new exercise; its author has to fill in each TODO.

    `texts` may have a summary, an idea and hints.
    """
    values = {"title": title, "points": points, "implements": implements, "requires": requires}
    values |= {**NO_TEXTS, **texts}
    # JSON does: texts and lists of texts look the same in TOML.
    written = {key: json.dumps(value, ensure_ascii=False) for key, value in values.items()}
    hints = [json.dumps(hint, ensure_ascii=False) for hint in json.loads(written.pop("hints"))]
    template = templates("new_files").get_template(f"{EXERCISE_FILE}.j2")
    return template.render(**written, hints=hints, order=order, stage=stage, minutes=minutes)


@dataclass(frozen=True)
class CoursePlace:
    """Where the folders of new exercises go."""

    reference: Path
    order: int  # the order of the next exercise
    is_new: bool  # whether a new course begins here
    was_empty: bool = False  # whether `reference` was empty before

    def folder(self, name: str) -> Path:
        """Return the folder of an exercise."""
        return self.reference / name

    def refuse_existing(self, name: str, remedy: str) -> None:
        """Raise `RequestError` if there is an exercise of this name."""
        if self.folder(name).exists():
            raise RequestError(f"{short_path(self.folder(name))} is there already", remedy)

    def begin_course(self, points: int) -> None:
        """Write `course.toml`; trust the course if its folder was empty before."""
        path = self.reference / COURSE_FILE
        if os.path.lexists(path):
            raise RequestError(f"{short_path(path)} is there already", ELSEWHERE)
        text = templates("new_files").get_template(f"{COURSE_FILE}.j2").render(points=points)
        self._write_file(path, text)
        if self.was_empty:
            trust_folder(self.reference.parent)

    def tell_untrusted(self) -> None:
        """Say how to trust a new course in a folder that held files before."""
        if self.is_new and not self.was_empty:
            folder = short_path(self.reference.parent)
            click.echo(
                f"{short_path(self.reference)} held other files before, so it is not trusted:"
            )
            click.echo(f"\n  grader trust {folder}   shows them, and asks once")

    def tell_lists(self, names: Sequence[str]) -> None:
        """Say what to add to the lists of the course, if it has any, for exercises written."""
        course = load_course(self.reference.parent)
        added = " and ".join(names)
        if taking_all := course.lists_with(names[0]):
            lists = " and ".join(taking_all)
            click.echo(f"\nadd the points of {added} to those of the list {lists} in {SETTINGS}")
        elif course.lists:
            lists = ", ".join(course.lists)
            click.echo(f"\nadd {added} and its points to a list in {SETTINGS}: {lists}")

    def write(self, name: str, texts: Mapping[str, str]) -> None:
        """Write the files of an exercise."""
        for file, text in texts.items():
            self._write_file(self.folder(name) / file, text)

    def _write_file(self, path: Path, text: str) -> None:
        write_file(path, self.reference.parent, text.encode(), ELSEWHERE)


def find_place(root: Path | None) -> CoursePlace:
    """Return where new exercises go: the course of a folder, or a new one in it.

    A named folder counts as it is, so that a course can begin inside another one.
    """
    folder = (root or Path.cwd()).resolve()
    try:
        course = course_in(folder)
    except RequestError:
        course = None
    if course is not None and root is not None and folder.is_relative_to(course.reference):
        remedy = f"--course {course.root}   names the folder that holds reference/"
        raise RequestError(f"{short_path(folder)} is inside reference/ of a course", remedy)
    if course is None or (root is not None and course.root != folder):
        reference = folder / "reference"
        was_empty = not os.path.lexists(reference) or (
            not reference.is_symlink() and reference.is_dir() and not any(reference.iterdir())
        )
        return CoursePlace(reference, 1, is_new=True, was_empty=was_empty)
    if course.suites != "hidden":
        raise RequestError(f"{course.root} is a students' copy", ELSEWHERE)
    order = 1 + max((each.order for each in course.exercises), default=0)
    return CoursePlace(course.reference, order, is_new=False)
