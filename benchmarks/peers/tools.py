"""The tools that are compared: the files each one needs, the command measured, the points.

Files that the teacher makes once, or students when they hand in, are written before measuring.
"""

from __future__ import annotations

import json
import os
import shutil
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from peers import batch, environments, notebooks
from peers.environments import OURS, ROOT
from peers.harness import SEED, Case
from peers.measure import Usage, measured

Files = Mapping[str, str]  # exercise to the text of its file
Class = Mapping[str, Files]  # student to files
Points = dict[str, dict[str, int]]  # student to exercise to points


@dataclass(frozen=True)
class Graded:
    """The points of a class, and one usage for each command that was run."""

    points: Points
    usages: tuple[Usage, ...]


class Tool(Protocol):
    """A tool that grades a class.

    `copies` is the number of copies of the class in a second run, for a tool that grades many
    submissions in one run, and otherwise 1.
    """

    name: str
    packages: tuple[str, ...]
    environment: str
    copies: int

    def grade(self, students: Class, work: Path) -> Graded:
        """Write a class into the new folder `work`, grade it and collect the points."""


def write_files(folder: Path, files: Files) -> Path:
    """Write a student's files into a new folder, and return it."""
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text, "utf-8")
    return folder


def _settings(name: str, work: Path) -> dict[str, str]:
    """Return variables with which a tool finds its programs and does not touch the user's files."""
    bin_folder = environments.python(name).parent
    keys = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")
    private = {key: str(work / "private" / key.lower()) for key in keys}
    for folder in private.values():
        Path(folder).mkdir(parents=True, exist_ok=True)
    return {"PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}", **private}


@dataclass
class Ours:
    """`grader batch`, one command for the class."""

    cases: Sequence[Case]
    name: str = "`grader batch`"
    packages: tuple[str, ...] = ("torch",)
    environment: str = OURS
    copies: int = 4

    def grade(self, students: Class, work: Path) -> Graded:
        """Grade the class with one command."""
        for student, files in students.items():
            write_files(work / "class" / student, files)
        usage = batch.grade(work / "class", work / "out", log=work / "log", jobs=1)
        return Graded(batch.points(work / "out"), (usage,))


@dataclass
class Pytest:
    """A pytest process for each submission."""

    cases: Sequence[Case]
    name: str = "`python -m pytest`"
    packages: tuple[str, ...] = ("pytest",)
    environment: str = OURS
    copies: int = 1

    def grade(self, students: Class, work: Path) -> Graded:
        """Grade each student with one command: the hidden suites, on the student's files."""
        exercises = dict.fromkeys(case.exercise for case in self.cases)
        suites = [ROOT / "reference" / name / "test_hidden.py" for name in exercises]
        python = environments.python(OURS)
        points: Points = {}
        usages = []
        for student, files in students.items():
            folder = write_files(work / "class" / student, files)
            results = work / f"{student}.xml"
            command: list[str | Path] = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
            command += ["--submission", folder, "--grading-seed", str(SEED)]
            command += [f"--junit-xml={results}", *suites]
            usages.append(measured(command, cwd=ROOT, log=work / "log", fine=(0, 1)))
            points[student] = self._points(results)
        return Graded(points, tuple(usages))

    def _points(self, results: Path) -> dict[str, int]:
        """Return the points of the tests that passed; pytest itself does not count points."""
        passed = {
            (case.get("classname", "").split(".")[-2], case.get("name"))
            for case in ET.parse(results).iter("testcase")
            if not len(case)
        }
        found: Counter[str] = Counter()
        for case in self.cases:
            found[case.exercise] += case.points * ((case.exercise, case.test) in passed)
        return dict(found)


@dataclass
class Otter:
    """`otter run` for each submission, a notebook, with a test file in OK format per exercise."""

    cases: Sequence[Case]
    name: str = "`otter run`"
    packages: tuple[str, ...] = ("otter-grader",)
    environment: str = "otter"
    copies: int = 1

    def grade(self, students: Class, work: Path) -> Graded:
        """Grade each student with one command."""
        otter = environments.python(self.environment).parent / "otter"
        self._write_tests(work / "tests")
        environments.run([otter, "generate", "-t", "tests", "-o", "autograder.zip"], cwd=work)
        points: Points = {}
        usages = []
        for student, files in students.items():
            folder = work / student
            cells = [notebooks.solution(*file) for file in files.items()]
            notebooks.write(folder / "course.ipynb", cells)
            command: list[str | Path] = [otter, "run", "-a", work / "autograder.zip", "-o", folder]
            command.append(folder / "course.ipynb")
            env = _settings(self.environment, work)
            usages.append(measured(command, cwd=work, log=work / "log", env=env))
            tests = json.loads((folder / "results.json").read_text("utf-8"))["tests"]
            points[student] = {t["name"]: round(t["score"]) for t in tests if "score" in t}
        return Graded(points, tuple(usages))

    def _write_tests(self, folder: Path) -> None:
        folder.mkdir()
        for name in dict.fromkeys(case.exercise for case in self.cases):
            tests = [
                {
                    "code": f">>> from harness import check\n>>> check({name!r}, {case.test!r})",
                    "hidden": True,
                    "points": case.points,
                }
                for case in self.cases
                if case.exercise == name
            ]
            suites = [{"cases": tests, "scored": True, "type": "doctest"}]
            test = {"name": name, "suites": suites}
            (folder / f"{name}.py").write_text(f"OK_FORMAT = True\ntest = {test!r}\n", "utf-8")


@dataclass
class Nbgrader:
    """`nbgrader autograde` for the class: a notebook per student, a test cell per hidden test."""

    cases: Sequence[Case]
    name: str = "`nbgrader autograde`"
    packages: tuple[str, ...] = ("nbgrader",)
    environment: str = "nbgrader"
    copies: int = 2

    def grade(self, students: Class, work: Path) -> Graded:
        """Grade the class with one command."""
        nbgrader = environments.python(self.environment).parent / "nbgrader"
        env = _settings(self.environment, work)
        config = 'c = get_config()\nc.CourseDirectory.course_id = "attention"\n'
        (work / "nbgrader_config.py").write_text(config, "utf-8")
        solutions = {
            name: (ROOT / "reference" / name / "solution.py").read_text("utf-8")
            for name in dict.fromkeys(case.exercise for case in self.cases)
        }
        cells = notebooks.source(solutions, self.cases)
        notebooks.write(work / "source" / "course" / "course.ipynb", cells)
        log = work / "log"
        measured([nbgrader, "generate_assignment", "course"], cwd=work, log=log, env=env)
        released = work / "release" / "course" / "course.ipynb"
        for student, files in students.items():
            cells = notebooks.submitted(released, files)
            notebooks.write(work / "submitted" / student / "course" / "course.ipynb", cells)
        usage = measured([nbgrader, "autograde", "course"], cwd=work, log=log, env=env)
        return Graded(self._points(work), (usage,))

    def _points(self, work: Path) -> Points:
        """Return the points from nbgrader's own gradebook."""
        read = Path(__file__).parent / "gradebook.py"
        scores = json.loads(environments.run([environments.python(self.environment), read], work))
        cells = {notebooks.cell_of(case): case.exercise for case in self.cases}
        points: Points = {}
        for student, cell, score in scores:
            mine = points.setdefault(student, dict.fromkeys(cells.values(), 0))
            mine[cells[cell]] += round(score)
        return points


@dataclass
class Gradescope:
    """An autograder made with gradescope-utils, one process for each submission."""

    cases: Sequence[Case]
    name: str = "gradescope-utils"
    packages: tuple[str, ...] = ("gradescope-utils",)
    environment: str = "gradescope"
    copies: int = 1

    def grade(self, students: Class, work: Path) -> Graded:
        """Run `run_autograder` for each student, in the folders that Gradescope would make."""
        env = _settings(self.environment, work)
        points: Points = {}
        usages = []
        for student, files in students.items():
            folder = work / student
            write_files(folder / "submission", files)
            (folder / "results").mkdir()
            self._write_autograder(folder)
            command: list[str | Path] = ["bash", folder / "run_autograder"]
            usages.append(measured(command, cwd=folder, log=work / "log", env=env))
            points[student] = self._points(folder / "results" / "results.json")
        return Graded(points, tuple(usages))

    def _write_autograder(self, folder: Path) -> None:
        templates = Path(__file__).parent / "gradescope"
        shutil.copytree(templates, folder / "source")
        (folder / "source" / "run_autograder").rename(folder / "run_autograder")
        tests = folder / "source" / "tests"
        tests.mkdir()
        names = list(dict.fromkeys(case.exercise for case in self.cases))
        for number, name in enumerate(names, start=1):
            mine = [case for case in self.cases if case.exercise == name]
            (tests / f"test_{number}_{name}.py").write_text(_unittest(number, mine), "utf-8")

    def _points(self, results: Path) -> dict[str, int]:
        names = list(dict.fromkeys(case.exercise for case in self.cases))
        found = dict.fromkeys(names, 0)
        for test in json.loads(results.read_text("utf-8"))["tests"]:
            number = int(test["number"].partition(".")[0])
            found[names[number - 1]] += round(test["score"])
        return found


def _unittest(number: int, cases: Sequence[Case]) -> str:
    """Return the code of an exercise's TestCase; numbered names keep its methods in order."""
    lines = [
        "import unittest",
        "from gradescope_utils.autograder_utils.decorators import number, visibility, weight",
        "from harness import check",
        "class Hidden(unittest.TestCase):",
    ]
    for place, case in enumerate(cases, start=1):
        lines += [
            f"    @weight({case.points})",
            f"    @number('{number}.{place}')",
            "    @visibility('hidden')",
            f"    def test_{place:02}(self):",
            f"        check({case.exercise!r}, {case.test!r})",
        ]
    return "\n".join(lines) + "\n"


TOOLS = (Ours, Pytest, Otter, Nbgrader, Gradescope)
