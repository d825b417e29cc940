"""A students' copy of a course: stubs, public tests, notebooks, and the grader's data.

`grader build` keeps these files of the whole course in `exercises/`. A copy of one list has the
files of that list, with a course page and a notebook of its own.
"""

from __future__ import annotations

import json

import click
from msgspec import to_builtins
from msgspec.structs import asdict

from grader.commands.notebooks import PATH, HandOutAddress, stops_of
from grader.commands.notebooks import notebooks as notebooks_of
from grader.course import records
from grader.course.course import NOTEBOOKS, PUBLIC_COURSE, Course, Exercise
from grader.course.known_mistakes import load_mistakes
from grader.course.policy import MUTED
from grader.course.settings import read_text
from grader.course.stubs import make_stub
from grader.course.suite_text import has_cases
from grader.errors import RequestError
from grader.grading.diagnosis.record import load_record, path_of
from grader.reports.course_path import path_in_words
from grader.reports.pages import path_picture
from grader.trees import read_file

README = """\
<!-- made by `grader build` from reference/; edit there -->
# {title}

Each file here is one exercise. Its docstring is the task; replace every
`raise NotImplementedError` by your own code, then ask for a verdict:

    grader check <exercise>     your points, and the first thing to fix
    grader hint <exercise>      a hint, then the next one
    grader status               how far you are
    grader reset <exercise>     start over; your file is kept as a copy

`pytest tests` runs the public tests in your editor, with breakpoints.

![{path}]({picture})

| | exercise | what it adds | you write | points |{columns}
|---|---|---|---|---|{rules}
{rows}
{totals}
"""
WITH_NOTEBOOKS = click.option(
    "--notebooks", is_flag=True, help="Write each exercise as a notebook, too, and one with all."
)


def students_files(
    course: Course, *, notebooks: bool = False, address: HandOutAddress | None = None
) -> dict[str, bytes]:
    """Return the files of a students' copy of a course, or of the list that was chosen from it.

    The files are by their paths in the copy; with `notebooks`, each exercise is a
    notebook, too, with a button for Colab if the copy has an `address`. Raises `RequestError` if
    the course is not built.
    """
    texts = students_texts(course, address)
    files = {
        name: text.encode()
        for name, text in texts.items()
        if notebooks or not name.startswith(f"{NOTEBOOKS}/")
    }
    for name in course.names:
        if load_record(course, name) is not None:  # None without cases; raises if damaged
            path = path_of(course, name)
            files[records.file_of(name)] = read_file(path, path, records.MAX_BYTES)
    if course.suites == "hidden" and not course.student_folder.is_dir():
        raise RequestError(f"there is no {course.student_folder}", "grader build")
    return {f"{course.student_folder.name}/{name}": data for name, data in files.items()}


def students_texts(course: Course, address: HandOutAddress | None = None) -> dict[str, str]:
    """Return every text generated for students, by its path in their folder."""
    texts = {"README.md": _readme(course), PUBLIC_COURSE: _public_course(course)}
    texts[PATH] = path_picture(stops_of(course))
    for exercise in course.exercises:
        texts[f"{exercise.name}.py"] = make_stub(exercise)
        texts[f"tests/test_{exercise.name}.py"] = course.public_suite(exercise.name)
        if (beside := course.text(exercise.name)).is_file():
            texts[f"tests/test_{exercise.name}.txt"] = beside.read_text("utf-8")
        if (sayings := _sayings(course, exercise)) is not None:
            texts[records.sayings_of(exercise.name)] = sayings
    for name, text in notebooks_of(course, address).items():
        texts[f"{NOTEBOOKS}/{name}"] = text
    return texts


def _sayings(course: Course, exercise: Exercise) -> str | None:
    """Return the texts about an exercise's mistakes, a line each; None if it has no cases."""
    if course.suites == "public":
        path = course.student_folder / records.sayings_of(exercise.name)
        return read_text(path) if path.is_file() else None
    if not has_cases(exercise):
        return None
    said = [records.Saying(m.name, m.says, m.hint, m.number) for m in load_mistakes(exercise)]
    lines = ",\n ".join(json.dumps(to_builtins(each), ensure_ascii=False) for each in said)
    return f"[{lines}]\n"


def _public_course(course: Course) -> str:
    """Return the course's data for a students' copy: no solutions, no hidden suites."""
    exercises = []
    for exercise in course.exercises:
        fields = asdict(exercise) | {"stub": make_stub(exercise)}
        fields["questions"] = [each.sealed() for each in exercise.questions]
        del fields["folder"], fields["reviewed"]  # such a course could not be built
        if exercise.minutes is None:
            del fields["minutes"]
        exercises.append(fields)
    public = {"title": course.title, "points": course.points, "exercises": exercises}
    if course.mute_imports != MUTED:
        public["mute_imports"] = course.mute_imports
    if course.chosen:
        public["chosen"] = course.chosen
    elif course.lists:
        public["lists"] = {name: asdict(listed) for name, listed in course.lists.items()}
    return json.dumps(public, indent=1, default=to_builtins) + "\n"


def _readme(course: Course) -> str:
    lists = {} if course.chosen else course.lists
    timed = any(exercise.minutes for exercise in course.exercises)
    rows = [
        f"| {number} | [{exercise.title}]({exercise.name}.py) | {_adds(exercise)} "
        f"| {', '.join(f'`{name}`' for name in exercise.implements)} | {exercise.points} |"
        + (f" {exercise.minutes or ''} |" if timed else "")
        + (f" {', '.join(course.lists_with(exercise.name))} |" if lists else "")
        for number, exercise in enumerate(course.exercises, start=1)
    ]
    totals = [
        f"| | the list `{name}` | {listed.title or course.title} | | **{listed.points}** |"
        + (f" {_minutes(course.choose(name))} |" if timed else "")
        + f" `--course-list {name}` |"
        for name, listed in lists.items()
    ] or [
        f"| | | | | **{sum(exercise.points for exercise in course.exercises)}** |"
        + (f" {_minutes(course)} |" if timed else "")
    ]
    return README.format(
        title=course.title,
        rows="\n".join(rows),
        totals="\n".join(totals),
        columns=" minutes |" * timed + " lists |" * bool(lists),
        rules="---|" * (timed + bool(lists)),
        path=path_in_words(stops_of(course)),
        picture=PATH,
    )


def _minutes(course: Course) -> int:
    return sum(exercise.minutes or 0 for exercise in course.exercises)


def _adds(exercise: Exercise) -> str:
    paper = f" *{exercise.paper}*" if exercise.paper else ""
    return f"{exercise.adds or exercise.summary}{paper}"
