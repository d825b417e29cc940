"""`grader handout`: write and update the repository that students get."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

import click

from grader.commands.bringing import LIST, bring, templates
from grader.commands.build import refuse_stale
from grader.commands.notebooks import HandOutAddress
from grader.commands.options import COURSE, PATH, short_path
from grader.commands.own_wheel import WHEEL_NAME, make_wheel, pins
from grader.commands.students_files import WITH_NOTEBOOKS, students_files
from grader.commands.trusted_courses import files_among, trust_contents
from grader.course.course import NOTEBOOKS, Course
from grader.errors import RequestError
from grader.files import read_bounded

KINDS = ("practice", "required")
NOTE = "This is feedback and worth nothing as a mark, because students can change what decides it."
CI = {"github": ".github/workflows/grader.yml", "gitlab": ".gitlab-ci.yml"}
README, REQUIREMENTS = "README.md", "requirements.txt"
TEMPLATES = {
    README: "README.md.j2",
    REQUIREMENTS: "requirements.txt.j2",
    ".gitignore": "gitignore.j2",
    ".devcontainer/devcontainer.json": "devcontainer.json.j2",
    ".vscode/tasks.json": "tasks.json.j2",
}
MAX_WORKFLOW_BYTES = 1 << 20
WHEELS = "attention_grader-*.whl"
REPOSITORY = re.compile(r"(https://github\.com/[\w.-]+/[\w.-]+?)(?:\.git)?(?:/tree/([\w./-]+))?/?")
CLONED = re.compile(rf"git clone(?: --branch (?P<branch>\S+))? (?P<place>{REPOSITORY.pattern}) ")
ADDRESS = re.compile(r"https://[^\s#]+\.whl#sha256=[0-9a-f]{64}")


@click.command()
@click.argument("folder", type=PATH, metavar="DIR")
@click.option(
    "--ci",
    type=click.Choice(KINDS),
    help="Have each push checked. practice: feedback, worth nothing as a mark; required: with a "
    "bundle, by a workflow that students cannot change.",
)
@click.option(
    "--host",
    type=click.Choice(list(CI)),
    help="With --ci: the platform that runs the workflow.  [default: github]",
)
@click.option(
    "--grader",
    "address",
    metavar="URL#sha256=HASH",
    callback=lambda context, option, value: _hashed(value),
    help="Where the grader is installed from, as a wheel. Default: the repository holds this one.",
)
@click.option(
    "--address",
    "repository",
    metavar="URL",
    callback=lambda context, option, value: _repository(value),
    help="Where the repository will be, such as https://github.com/OWNER/NAME: the notebooks get a "
    "button that opens them on Colab.",
)
@click.option("--update", is_flag=True, help="Bring a folder up to date that was written before.")
@WITH_NOTEBOOKS
@COURSE
def handout(
    folder: Path,
    ci: str | None,
    host: str | None,
    address: str,
    repository: HandOutAddress | None,
    update: bool,
    notebooks: bool,
    course: Course,
) -> int:
    """Write the repository that students get: no solution and no hidden test is in it.

    \b
    grader handout ../homework                  the exercises, a README, what to install
    grader handout ../homework --ci practice    and a workflow that checks each push
    grader handout ../homework --update         after the course has changed

    A workflow may decide marks only if students can change neither the workflow nor the programs
    that it runs: docs/ci.md says where that is so, and --ci required is made for it.

    An update replaces files that nobody has changed. A file that a student has changed stays as it
    is; if the course changed it as well, the new version is put beside it, and the command names
    it.
    """
    refuse_stale(course)
    is_there = os.path.lexists(folder / LIST)  # anything may have this name; `bring` reports it
    if update and not is_there:
        raise RequestError(f"{folder} was not handed out", f"grader handout {folder}")
    if is_there and not update:
        raise RequestError(f"{folder} was handed out before", f"grader handout {folder} --update")
    workflows = {name: _kind_of(folder / file) for name, file in CI.items()} if update else {}
    if ci is not None:
        workflows[host or "github"] = ci
    elif host is not None:
        raise RequestError("--host chooses the platform for --ci", f"--ci practice --host {host}")
    kinds = {name: kind for name, kind in workflows.items() if kind is not None}
    repository = repository or (_repository_in(folder / README) if update else None)
    notebooks = notebooks or (update and (folder / "exercises" / NOTEBOOKS).is_dir())
    address = address or (_address_in(folder / REQUIREMENTS) if update else "")
    files = files_of(course, kinds, address, notebooks=notebooks, repository=repository)
    bring(files, folder).echo(folder)
    for old in sorted({*folder.glob(WHEELS)} - {folder / name for name in files}):
        click.echo(f"delete {short_path(old)}: it is another version of the grader")
    trust_contents(files_among(files), "handout")
    for name in (name for name, kind in kinds.items() if kind == "required" and not update):
        click.echo(f"\n{CI[name]} is for a place where students cannot change it: see docs/ci.md")
    if not update:
        click.echo(f"\nTry it as a student would: cd {short_path(folder)} && grader")
    return 0


def _kind_of(workflow: Path) -> str | None:
    """Return the kind of a workflow file, even if it was changed; None if there is no file."""
    if not workflow.is_file():
        return None
    text = read_bounded(workflow, MAX_WORKFLOW_BYTES).decode("utf-8", "replace")
    return next((kind for kind in KINDS if f"handout --ci {kind}" in text), KINDS[0])


def _hashed(address: str | None) -> str:
    """Return the address of a wheel with its hash; raises `click.BadParameter` for another."""
    if address and not ADDRESS.fullmatch(address):
        raise click.BadParameter(
            f"{address} is not https://….whl#sha256= and 64 hexadecimal digits"
        )
    return address or ""


def _repository(address: str | None) -> HandOutAddress | None:
    """Return the place of a hand-out on GitHub; raises `click.BadParameter` for another."""
    if not address:
        return None
    found = REPOSITORY.fullmatch(address)
    if found is None:
        raise click.BadParameter(f"{address} is not https://github.com/OWNER/NAME")
    return HandOutAddress(found[1], found[2] or "main")


def _repository_in(readme: Path) -> HandOutAddress | None:
    """Return the place of a hand-out that was written before, if that was known."""
    if not readme.is_file():
        return None
    text = read_bounded(readme, MAX_WORKFLOW_BYTES).decode("utf-8", "replace")
    found = CLONED.search(text)
    return found and HandOutAddress(found["place"], found["branch"] or "main")


def _address_in(requirements: Path) -> str:
    """Return the address that students install the grader from; empty if it is in the folder."""
    if not requirements.is_file():
        return ""
    text = read_bounded(requirements, MAX_WORKFLOW_BYTES).decode("utf-8", "replace")
    return next(filter(ADDRESS.fullmatch, text.splitlines()), "")


def _cloned(repository: HandOutAddress | None) -> str:
    """Return the part of the command that clones a hand-out."""
    if repository is None:
        return "YOUR-REPOSITORY"
    branch = "" if repository.branch == "main" else f"--branch {repository.branch} "
    return f"{branch}{repository.repository}"


def files_of(
    course: Course,
    kinds: Mapping[str, str],
    address: str = "",
    *,
    notebooks: bool = False,
    repository: HandOutAddress | None = None,
) -> dict[str, bytes]:
    """Return all files of the students' repository, by their paths in it.

    `kinds` says for each host which workflow it gets, and `repository` where the folder will be.
    The grader is installed from an `address`, or else from its wheel in the repository: an index
    could have anybody's package under its name.
    """
    wheels = {} if address else {WHEEL_NAME: make_wheel()}
    digests = [hashlib.sha256(data).hexdigest() for data in wheels.values()]
    made_from = templates("handout_files")
    wanted = TEMPLATES | {CI[host]: f"{host}-{kind}.yml.j2" for host, kind in kinds.items()}
    values = {
        "course": course,
        "grader": address or f"file:{WHEEL_NAME}#sha256={digests[0]}",
        "wheel": WHEEL_NAME if wheels else "",
        "torch": version("torch").partition("+")[0],
        "first": course.names[0],
        "kinds": sorted(set(kinds.values())),
        "note": NOTE,
        "pins": pins("bundle").rstrip() if "required" in kinds.values() else "",
        "cloned": _cloned(repository),
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
    }
    made = {place: made_from.get_template(name).render(values) for place, name in wanted.items()}
    return {
        **students_files(course, notebooks=notebooks, address=repository),
        **{place: text.encode() for place, text in made.items()},
        **wheels,
    }
