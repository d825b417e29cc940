"""What the repository promises about itself."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_the_pages_show_what_the_commands_say_today() -> None:
    done = subprocess.run(
        [sys.executable, "docs/build.py", "--check"],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"run `make docs`: {done.stdout}{done.stderr}"


def test_the_screenshots_show_todays_pages() -> None:
    sys.path.insert(0, str(ROOT / "docs"))
    import screenshots

    assert screenshots.HASHES.read_text("utf-8") == screenshots.hashes(), "run `make docs`"
    taken = {path.stem for path in screenshots.IMAGES.glob("*.png")}
    assert taken == set(screenshots.SHOTS)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_a_pages_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", page.read_text("utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_a_page_names_only_commands_that_exist(page: Path) -> None:
    from grader.cli import commands

    text = page.read_text("utf-8")
    named = set(re.findall(r"(?:^ {4}|`|\$ )grader ([a-z]+)", text, re.MULTILINE))
    assert named <= set(commands.commands)
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    assert set(re.findall(r"(?:^ {4}|`)make ([a-z-]+)", text, re.MULTILINE)) <= targets


def test_every_command_teaches_what_it_does() -> None:
    from grader.cli import commands

    for name, command in commands.commands.items():
        assert command.help, name
        for parameter in command.params:
            if parameter.param_type_name == "option":
                assert getattr(parameter, "help", None), f"{name} {parameter.name}"


def test_the_engine_names_no_exercise(course) -> None:
    for path in (ROOT / "grader").rglob("*.py"):
        code = re.sub(r'"""[\s\S]*?"""|#.*', "", path.read_text("utf-8"))
        assert [name for name in course.names if name in code] == [], path


def test_every_tensor_line_of_a_reference_ends_in_its_shape(course) -> None:
    start, work = (
        r"^\s+(\w+|self\.register_buffer\(.*|return) ?(=|\()",
        r".*(@|torch\.|\.view|softmax)",
    )
    makes_a_tensor = re.compile(start + work)
    for exercise in course.exercises:
        solution = exercise.read("solution.py").split("# --- solution")[1:]
        lines = "\n".join(part.split("# --- end")[0] for part in solution).splitlines()
        bare = [line for line in lines if makes_a_tensor.match(line) and "# " not in line]
        assert bare == [], exercise.name


def test_the_command_line_offers_what_there_is() -> None:
    from grader.cli import classes, graded
    from grader.commands.export import FILLED
    from grader.submissions.layouts import LAYOUTS

    assert set(classes.LAYOUTS) == set(LAYOUTS)
    assert set(FILLED) < set(graded.EXPORTS)
