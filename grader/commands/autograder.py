"""`grader autograder`: write autograders for Gradescope, PrairieLearn and Classroom 50."""

from __future__ import annotations

import html
import json
import os
import shlex
import sys
import uuid
from collections import ChainMap
from collections.abc import Mapping
from pathlib import Path

import click
import msgspec

from grader import __version__
from grader.commands.bringing import bring, templates
from grader.commands.build import refuse_stale
from grader.commands.on_platform import COURSE as COURSE_NAME
from grader.commands.on_platform import (
    EXERCISES,
    PLATFORMS,
    SETTINGS,
    SHARED,
    PlatformSettings,
    read_platform_settings,
)
from grader.commands.options import (
    COURSE,
    FILE,
    FOLDER,
    SEED,
    exercise_names,
    isolation_option,
    short_path,
)
from grader.commands.own_wheel import WHEEL_NAME, files_below, make_wheel, pins
from grader.commands.students_files import students_files
from grader.course.course import Course, Exercise
from grader.errors import RequestError
from grader.files import write_whole, zipped
from grader.grading.seeds import fresh_secret, secret_from
from grader.reports.platforms import gradescope as gradescope_format
from grader.reports.platforms import prairielearn as prairielearn_format
from grader.sandbox.confinement.limits import Isolation

PINS = "constraints.txt"
PROGRAMS = frozenset({"setup.sh", "run_autograder"})
MOST_SECONDS = 600  # seconds that PrairieLearn gives a job
START_SECONDS = 60  # seconds to start, import torch and name mistakes
OUT = click.option(
    "--out", "folder", type=FOLDER, required=True, metavar="DIR", help="The folder to write to."
)


@click.group()
def autograder() -> None:
    """Write an autograder that grades submissions on a platform's own machines.

    \b
    grader autograder gradescope                         a zip to upload
    grader autograder prairielearn --out ../pl-course    a question for each exercise
    grader autograder classroom50 --out ../autograder    a folder for your classroom50 repository
    grader autograder image --out ../image               a Dockerfile for jobs on GitLab and GitHub

    docs/ci.md has the steps on each platform, and what students can do about a mark there.
    """


@autograder.command()
@click.option(
    "--out",
    "file",
    type=FILE,
    default="gradescope.zip",
    show_default=True,
    metavar="FILE.zip",
    help="The zip to write.",
)
@SEED
@isolation_option("confined")
@COURSE
def gradescope(file: Path, seed: int | None, isolation: Isolation, course: Course) -> int:
    """Write the zip that Gradescope takes as an autograder: the course and this grader.

    Each submission gets its own inputs, from a secret in the zip; --seed sets the secret.
    """
    scripts = {
        name: _rendered(name, failed=gradescope_format.FAILED, python=_python())
        for name in sorted(PROGRAMS)
    }
    files = {**scripts, **_grader_files(), **_course_files(course, isolation, _secret(seed))}
    try:
        write_whole(file, zipped(files, PROGRAMS))
    except OSError as error:
        message = f"cannot write {file}: {error.strerror}"
        raise RequestError(message, "--out FILE.zip") from None
    click.echo(f"wrote {short_path(file)}: {course.points} points, upload it as it is")
    return 0


@autograder.command()
@click.argument("names", nargs=-1, metavar="[EXERCISES]...", shell_complete=exercise_names)
@OUT
@click.option(
    "--image",
    default="attention-grader",
    show_default=True,
    help="The name of the Docker image, as PrairieLearn pulls it.",
)
@SEED
@isolation_option("confined")
@COURSE
def prairielearn(
    names: tuple[str, ...],
    folder: Path,
    image: str,
    seed: int | None,
    isolation: Isolation,
    course: Course,
) -> int:
    """Write a question for each exercise into the folder of a course of PrairieLearn.

    Files that all questions share go to serverFilesCourse/, and the files of their image to
    image/. A second run updates all files except those that you have changed.
    """
    refuse_stale(course)
    questions = [_question(course, course[name], image) for name in names or course.names]
    secret = _secret(seed, folder)
    shared = {
        "grade.sh": _rendered("grade.sh", failed=prairielearn_format.FAILED),
        **_course_files(course, isolation, secret),
    }
    files = {**_below(SHARED, shared), **_below("image", _image_files())}
    bring(files | dict(ChainMap(*questions)), folder).echo(folder)
    click.echo(f"\nBuild the image: docker build -t {image} {short_path(folder / 'image')}")
    return 0


@autograder.command()
@OUT
def image(folder: Path) -> int:
    """Write a Dockerfile, for jobs in which nothing has to be installed.

    The image holds Python, torch and this grader, and no course. GitLab takes it as `image:`,
    GitHub as `container:`, and PrairieLearn for its questions.
    """
    bring(_image_files(), folder).echo(folder)
    click.echo(f"\nBuild the image: docker build -t attention-grader {short_path(folder)}")
    return 0


@autograder.command()
@OUT
@isolation_option("confined")
@COURSE
def classroom50(folder: Path, isolation: Isolation, course: Course) -> int:
    """Write autograder.py for Classroom 50, and what it needs beside it.

    Classroom 50 publishes this folder on the web. So it holds only files that students have
    anyway: the exercises with their public checks, and no solution.
    """
    refuse_stale(course)
    files = {
        "autograder.py": _rendered(
            "autograder.py", grader=__version__, wheel=WHEEL_NAME, pins=PINS
        ),
        **_grader_files(),
        **_below(COURSE_NAME, students_files(course)),
        SETTINGS: msgspec.json.encode(PlatformSettings(isolation)),
    }
    bring(files, folder).echo(folder)
    return 0


@autograder.command(hidden=True)
@click.argument("platform", type=click.Choice(list(PLATFORMS)))
@click.argument("root", type=FOLDER)
def grade(platform: str, root: Path) -> int:
    """Grade the submission on a platform's machine; the written files call this command."""
    PLATFORMS[platform](root.absolute())
    return 0


# --- what is written ------------------------------------------------------------------------------


def _rendered(name: str, **values: object) -> bytes:
    """Return a file made from its template; a value that is not text becomes quoted JSON."""
    texts = {key: each if isinstance(each, str) else _quoted(each) for key, each in values.items()}
    return templates("autograder_files").get_template(f"{name}.j2").render(texts).encode()


def _quoted(data: object) -> str:
    """Return JSON data as one word of a shell."""
    return shlex.quote(json.dumps(data))


def _python() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def _below(folder: str, files: Mapping[str, bytes]) -> dict[str, bytes]:
    return {f"{folder}/{name}": data for name, data in files.items()}


def _grader_files() -> dict[str, bytes]:
    """Return the files that install this grader elsewhere."""
    return {WHEEL_NAME: make_wheel(), PINS: pins().encode()}


def _image_files() -> dict[str, bytes]:
    """Return the files from which an image with this grader is built."""
    dockerfile = _rendered("Dockerfile", python=_python(), wheel=WHEEL_NAME)
    return {"Dockerfile": dockerfile, **_grader_files()}


def _secret(seed: int | None, folder: Path | None = None) -> bytes:
    """Return the secret of a seed; without one, the secret of `folder`, or else a new one."""
    if seed is not None:
        return secret_from(seed)
    if folder is not None and os.path.lexists(before := folder / SHARED / SETTINGS):
        return read_platform_settings(before, folder).key
    return fresh_secret()


def _course_files(course: Course, isolation: Isolation, secret: bytes) -> dict[str, bytes]:
    """Return the files of the course that decides the points, and the settings for grading."""
    course.refuse_unreviewed(course.names)
    return {
        **_below(COURSE_NAME, _deciding_files(course)),
        SETTINGS: msgspec.json.encode(PlatformSettings(isolation, secret.hex(), course.chosen)),
    }


def _deciding_files(course: Course) -> dict[str, bytes]:
    if course.suites == "public":
        return students_files(course)
    return {
        path.relative_to(course.root).as_posix(): path.read_bytes()
        for path in files_below(course.reference)
    }


def _question(course: Course, exercise: Exercise, image: str) -> dict[str, bytes]:
    """Return the files of a question of PrairieLearn that asks for one exercise."""
    file = f"{exercise.name}.py"
    page = _rendered(
        "question.html",
        file=file,
        title=_plain(exercise.title),
        summary=_plain(exercise.summary),
    )
    files = {
        "info.json": f"{json.dumps(_info(course, exercise, image), indent=4)}\n".encode(),
        "question.html": page,
        file: students_files(course)[f"exercises/{file}"],
        f"tests/{EXERCISES}": f"{exercise.name}\n".encode(),
    }
    return _below(f"questions/{exercise.name}", files)


def _plain(text: str) -> str:
    """Return text escaped for the page of a question, where braces are commands."""
    return html.escape(text).replace("{", "&#123;")


def _info(course: Course, exercise: Exercise, image: str) -> dict[str, object]:
    own = f"attention-grader/{course.title}/{exercise.name}"
    return {
        "uuid": str(uuid.uuid5(uuid.NAMESPACE_URL, own)),
        "title": exercise.title,
        "topic": course.title,
        "tags": ["code"],
        "type": "v3",
        "singleVariant": True,
        "gradingMethod": "External",
        "externalGradingOptions": {
            "enabled": True,
            "image": image,
            "entrypoint": f"/grade/{SHARED}/grade.sh",
            "serverFilesCourse": [f"{Path(SHARED).name}/"],
            "timeout": min(MOST_SECONDS, START_SECONDS + round(2 * exercise.most_seconds)),
        },
    }
