"""Build the site in build/site/: the pages, the exercises' statements, and a graded class.

    python docs/website.py [DIR]    the site goes into DIR, build/site by default (`make site`)

The pages stay as GitHub shows them: links are adapted in copies, from which mkdocs builds the site.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml

from grader.commands.notebooks import PATH
from grader.course.course import Course, Exercise, load_course

ROOT = Path(__file__).parent.parent
SETTINGS = ROOT / "docs" / "site.yml"
SITE = ROOT / "build" / "site"
LINK = re.compile(r"(!?)\[([^]]*)\]\(([^)#:\s]+)(#[^)]*)?\)")
LIST_AFTER_TEXT = re.compile(r"^(\S.*)\n( {0,3}- )", re.MULTILINE)
SAMPLE = """\
# See it

A made-up class of {students}, graded by this version of the grader. These are the very pages that
`grader batch` writes; each is one file.

- [The dashboard of the class](sample/index.html): what costs the class most, and every student
- [A report](sample/reports/s002.html), as the student gets it: one mistake, named and priced
- [Another report](sample/reports/s015.html), with several mistakes
- [A finished course](sample/finished.html): what the trained models write and attend to, how they
  learned it, and the whole path in green
- [The code beside the verdicts](sample/code/s002.html), for the teacher

[The sample class](sample-class.md) says what is in each submission.
"""


def page_places(course: Course) -> dict[Path, str]:
    """Return every page of the repository that is on the site, with its place there."""
    places = {path: path.name for path in sorted((ROOT / "docs").glob("*.md"))}
    places |= {ROOT / name: name for name in ("CONTRIBUTING.md", "CHANGELOG.md")}
    places[ROOT / "README.md"] = "index.md"
    places[ROOT / "exercises" / "README.md"] = "course.md"
    places[ROOT / "examples" / "class" / "README.md"] = "sample-class.md"
    for name in course.names:
        places[ROOT / "exercises" / f"{name}.py"] = f"exercises/{name}.md"
    return places


def with_links(text: str, path: Path, places: Mapping[Path, str]) -> str:
    """Return a page with its links as the site has them; of one that leads off the site, the text.

    Raise `SystemExit` for a link that leads nowhere.
    """

    def adapted(link: re.Match[str]) -> str:
        target = (path.parent / link[3]).resolve()
        if not target.exists():
            sys.exit(f"{path}: a link leads nowhere: {link[3]}")
        if target in places:
            says = title_of(target) if link[2].endswith(link[3]) else link[2]
            return f"[{says}]({places[target]}{link[4] or ''})"
        if link[1]:
            return f"![{link[2]}](images/{target.name})"
        return link[2]

    return LINK.sub(adapted, text)


def title_of(page: Path) -> str:
    """Return the title of a page, which a reader of the site knows better than the file's name."""
    return page.read_text("utf-8").partition("\n")[0].removeprefix("# ")


def exercise_page(exercise: Exercise, course: Course) -> str:
    """Return the page of an exercise: the statement, and what it is worth."""
    statement = LIST_AFTER_TEXT.sub(r"\1\n\n\2", exercise.read("statement.md").strip())
    title, _, task = statement.partition("\n")
    before = (*exercise.requires, *exercise.builds_on)
    builds = [f"[{course[name].title}]({name}.md)" for name in before]
    facts = [f"{exercise.points} points"]
    facts += [f"builds on {', '.join(builds)}"] if builds else []
    facts += [f"write `{exercise.name}.py`", f"check it with `grader check {exercise.name}`"]
    facts += [f"from *{exercise.paper}*"] if exercise.paper else []
    says = exercise.adds or exercise.summary
    return f"{title}\n\n*{says}*\n\n{' · '.join(facts)}\n{task}\n"


def write_sample(folder: Path) -> int:
    """Grade the sample class and put its pages into a folder; return how many students it has."""
    command = ["batch", "examples/class", "--seed", "7", "--quiet", "--out"]
    with TemporaryDirectory() as results:
        subprocess.run(
            [sys.executable, "-W", "ignore", "-m", "grader", *command, results],
            cwd=ROOT,
            check=False,  # some fail, as they should
            capture_output=True,
        )
        shutil.copytree(
            results, folder, ignore=shutil.ignore_patterns("ledger.*", "*.md", "*.json*")
        )
    return len(list((folder / "reports").glob("s[0-9][0-9][0-9].html")))


def write_finished(page: Path, course: Course) -> None:
    """Write the report on a student whose every exercise is right, models trained."""
    full = course.choose("full")
    with TemporaryDirectory() as folder:
        for exercise in full.exercises:
            Path(folder, f"{exercise.name}.py").write_text(exercise.read("solution.py"), "utf-8")
        chosen = ["--course-list", "full", "--seed", "7", "--format", "html", "--output", str(page)]
        command = [sys.executable, "-W", "ignore", "-m", "grader", "check", folder, *chosen]
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True)


def write_sources(folder: Path, course: Course) -> None:
    """Write everything that mkdocs makes pages of."""
    places = page_places(course)
    for path, place in places.items():
        if path.suffix == ".md":
            text = with_links(path.read_text("utf-8"), path, places)
            (folder / place).write_text(text, "utf-8")
    (folder / "exercises").mkdir()
    for exercise in course.exercises:
        page = exercise_page(exercise, course)
        (folder / "exercises" / f"{exercise.name}.md").write_text(page, "utf-8")
    shutil.copytree(ROOT / "docs" / "images", folder / "images", ignore=lambda *_: ["pages.txt"])
    shutil.copy(ROOT / "exercises" / PATH, folder / "images")
    students = write_sample(folder / "sample")
    write_finished(folder / "sample" / "finished.html", course)
    (folder / "sample.md").write_text(SAMPLE.format(students=students), "utf-8")


def settings(sources: Path, site: Path, course: Course) -> str:
    """Return what mkdocs is told, with the exercises and the folders."""
    told = yaml.safe_load(SETTINGS.read_text("utf-8"))
    for entry in told["nav"]:
        if "Exercises" in entry:
            entry["Exercises"] = [{e.title: f"exercises/{e.name}.md"} for e in course.exercises]
    return yaml.safe_dump({**told, "docs_dir": str(sources), "site_dir": str(site.resolve())})


def main() -> int:
    """Build the site; return mkdocs' exit code, which is 1 for a link that leads nowhere."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("site", nargs="?", type=Path, default=SITE, metavar="DIR")
    site = parser.parse_args().site
    course = load_course(ROOT)
    with TemporaryDirectory() as folder:
        sources, config = Path(folder) / "pages", Path(folder) / "mkdocs.yml"
        sources.mkdir()
        write_sources(sources, course)
        config.write_text(settings(sources, site, course), "utf-8")
        build = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(config)]
        silent = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
        # Not with --quiet, under which --strict passes everything.
        done = subprocess.run(build, check=False, env=silent, capture_output=True, text=True)
    print(f"wrote: {site}/index.html" if done.returncode == 0 else done.stderr)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
