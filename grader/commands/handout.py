"""`grader handout`: the repository that students get, and how it is brought up to date."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import click

from grader import __version__
from grader.commands.bringing import LIST, bring, templates
from grader.commands.build import refuse_stale
from grader.commands.options import COURSE, PATH, short_path
from grader.commands.students_files import WITH_NOTEBOOKS, students_files
from grader.commands.trusted_courses import files_among, trust_contents
from grader.course.course import NOTEBOOKS, Course
from grader.errors import RequestError

CI = {"github": ".github/workflows/grader.yml", "gitlab": ".gitlab-ci.yml"}
TEMPLATES = {"README.md": "README.md.j2", "requirements.txt": "requirements.txt.j2"}
IGNORED = ".gitignore"


@click.command()
@click.argument("folder", type=PATH, metavar="DIR")
@click.option(
    "--ci",
    type=click.Choice(list(CI)),
    help="Have each push checked: on GitHub, with remarks beside the code, or on GitLab.",
)
@click.option("--update", is_flag=True, help="Bring a folder up to date that was written before.")
@WITH_NOTEBOOKS
@COURSE
def handout(folder: Path, ci: str | None, update: bool, notebooks: bool, course: Course) -> int:
    """Write the repository that students get: no solution and no hidden test is in it.

    \b
    grader handout ../homework                the exercises, a README, what to install
    grader handout ../homework --ci github    and a workflow that checks each push
    grader handout ../homework --update       after the course has changed

    An update replaces what nobody has changed. What a student has changed stays as it is; if the
    course changed it as well, the new version is put beside it and named.
    """
    refuse_stale(course)
    is_there = (folder / LIST).is_file()
    if update and not is_there:
        raise RequestError(f"{folder} was not handed out", f"grader handout {folder}")
    if is_there and not update:
        raise RequestError(f"{folder} was handed out before", f"grader handout {folder} --update")
    if ci is None and update:
        ci = next((name for name, file in CI.items() if (folder / file).is_file()), None)
    notebooks = notebooks or (update and (folder / "exercises" / NOTEBOOKS).is_dir())
    files = files_of(course, ci, notebooks=notebooks)
    bring(files, folder).echo(folder)
    trust_contents(files_among(files), "handout")
    if not update:
        click.echo(f"\nTry it as a student would: cd {short_path(folder)} && grader")
    return 0


def files_of(course: Course, ci: str | None, *, notebooks: bool) -> dict[str, bytes]:
    """Return all files of the students' repository, by their paths in it."""
    made_from = templates("handout_files")
    wanted = {**TEMPLATES, IGNORED: "gitignore.j2"}
    if ci is not None:
        wanted[CI[ci]] = f"{ci}.yml.j2"
    values = {
        "course": course,
        "grader": __version__,
        "torch": version("torch").partition("+")[0],
        "first": course.names[0],
        "ci": ci,
    }
    made = {place: made_from.get_template(name).render(values) for place, name in wanted.items()}
    return {
        **students_files(course, notebooks=notebooks),
        **{place: text.encode() for place, text in made.items()},
    }
