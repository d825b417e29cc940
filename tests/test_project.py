"""What the repository promises about itself."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from commandline import Said
from warm import run_warm, warm_popen

from grader.commands import GROUPS, commands
from grader.course.course import Course
from grader.sandbox.host.worker import Worker
from grader.sandbox.host.zygote import Zygote

pytestmark = pytest.mark.in_turn

ROOT = Path(__file__).parent.parent
CONTEXT = click.Context(commands)
COMMANDS = {name: commands.get_command(CONTEXT, name) for name in commands.list_commands(CONTEXT)}
SCRIPTS = [
    path
    for place in (
        "benchmarks/*",
        "docs/*",
        "tests/attacks/*",
        "tests/corpus/*",
        "tests/mutants/*",
    )
    for path in sorted(ROOT.glob(f"{place}.py"))
    if '\nif __name__ == "__main__":' in path.read_text("utf-8")
]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.slow
def test_the_pages_show_what_the_commands_say_today() -> None:
    done = run_warm([sys.executable, "docs/build.py", "--check"], cwd=ROOT)
    assert done.code == 0, f"run `make docs`: {done.out}{done.err}"


@pytest.mark.slow
@pytest.mark.usefixtures("cli")  # with its warm zygote
def test_the_screenshots_show_todays_pages() -> None:
    sys.path.insert(0, str(ROOT / "docs"))
    import screenshots

    assert screenshots.HASHES.read_text("utf-8") == screenshots.hashes(), "run `make docs`"
    taken = {path.stem for path in screenshots.IMAGES.glob("*.png")}
    assert taken == set(screenshots.SHOTS)


def test_each_picture_is_on_a_page() -> None:
    pages = "".join(page.read_text("utf-8") for page in PAGES)
    shown = set(re.findall(r"images/([\w-]+)\.png", pages))
    assert shown == {path.stem for path in (ROOT / "docs" / "images").glob("*.png")}


def test_the_readme_says_of_other_graders_what_was_measured() -> None:
    table = (ROOT / "docs" / "benchmarks.md").read_text("utf-8")

    def row(tool: str) -> list[str]:
        (cells,) = re.findall(rf"\| `{tool}` \|(.*× .*)", table)
        return [cell.strip(" ×") for cell in cells.split("|")]

    ours, plain, otter = map(row, ("grader batch", "python -m pytest", "otter run"))
    says = f"takes {ours[1]}; plain pytest takes {float(plain[5]):.0f} times as long, "
    says += f"otter-grader {float(otter[5]):.0f} times"
    assert says in " ".join((ROOT / "README.md").read_text("utf-8").split())


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_a_pages_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", page.read_text("utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_a_page_names_only_commands_that_exist(page: Path) -> None:
    text = page.read_text("utf-8")
    named = set(re.findall(r"(?:^ {4}|`|\$ )grader ([a-z]+)", text, re.MULTILINE))
    assert named <= set(COMMANDS)
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    assert set(re.findall(r"(?:^ {4}|`)make ([a-z-]+)", text, re.MULTILINE)) <= targets


def test_the_teachers_page_can_be_read_in_a_quarter_of_an_hour() -> None:
    assert len((ROOT / "docs" / "teacher.md").read_text("utf-8").split()) <= 3500


def test_the_tests_that_answer_complaints_exist() -> None:
    page = (ROOT / "docs" / "complaints.md").read_text("utf-8")
    named = re.findall(r"`(test_\w+\.py): (\w+)` \|$", page, re.MULTILINE)
    assert len(named) == page.count("\n| ") - 1  # of the rows all but the header
    texts = {file: (ROOT / "tests" / file).read_text("utf-8") for file, _ in named}
    assert [name for file, name in named if f"def test_{name}(" not in texts[file]] == []


def test_every_command_teaches_what_it_does() -> None:
    for name, command in COMMANDS.items():
        assert command.help, name
        for parameter in command.params:
            if parameter.param_type_name == "option":
                assert getattr(parameter, "help", None), f"{name} {parameter.name}"


def test_the_engine_names_no_exercise(course: Course) -> None:
    for path in (ROOT / "grader").rglob("*.py"):
        code = re.sub(r'"""[\s\S]*?"""|#.*', "", path.read_text("utf-8"))
        assert [name for name in course.names if name in code] == [], path


def test_every_tensor_line_of_a_reference_ends_in_its_shape(course: Course) -> None:
    start, work = (
        r"^\s+(\w+|self\.register_buffer\(.*|return) ?(=|\()",
        r".*(@|torch\.(?!optim)|\.view|softmax)",
    )
    makes_a_tensor = re.compile(start + work)
    for exercise in course.exercises:
        solution = exercise.read("solution.py").split("# --- solution")[1:]
        lines = "\n".join(part.split("# --- end")[0] for part in solution).splitlines()
        bare = [line for line in lines if makes_a_tensor.match(line) and "# " not in line]
        assert bare == [], exercise.name


def test_help_shows_every_command_once_under_who_uses_it() -> None:
    page = CliRunner().invoke(commands, ["--help"]).output
    sections = re.findall(r"^(\w+):\n((?:  .*\n)+)", page, re.MULTILINE)
    shown = {users: re.findall(r"^  (\w+) ", lines, re.MULTILINE) for users, lines in sections}
    assert {users: shown[users] for users in GROUPS} == {
        users: list(group) for users, group in GROUPS.items()
    }
    assert max(map(len, page.splitlines())) <= 80


@pytest.mark.parametrize("arguments", [["--help"], ["no-such-command"], ["--version"]])
def test_help_and_errors_import_nothing_heavy(arguments: list[str]) -> None:
    heavy = "torch", "pytest", "jinja2", "rich", "msgspec", "grader.grading", "grader.classroom"
    code = (
        f"import sys; from grader.__main__ import run; run({arguments!r}); "
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.slow
def test_a_class_name_exists_once() -> None:
    places: dict[str, list[str]] = {}
    for path in sorted((ROOT / "grader").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


def names_used_in(tree: ast.AST) -> Counter[str]:
    """Return how often names are read; a string that is a name counts, as of an attribute."""
    used: Counter[str] = Counter()
    for node in ast.walk(tree):
        match node:
            case ast.Name(name, ast.Load()) | ast.Attribute(_, name, ast.Load()):
                used[name] += 1
            case ast.Constant(str(name)):
                used[name] += 1
            case ast.MatchClass(kwd_attrs=names):
                used.update(names)
    return used


def public_names_in(body: Sequence[ast.stmt]) -> Iterator[tuple[str, ast.stmt]]:
    """Yield the functions, classes, methods and constants without an underscore at the start."""
    for node in body:
        match node:
            case ast.FunctionDef(name) | ast.ClassDef(name):
                found = [name]
            case ast.Assign(targets=targets):
                found = [each.id for each in ast.walk(ast.Tuple(targets)) if type(each) is ast.Name]
            case ast.AnnAssign(target=ast.Name(name)):
                found = [name]
            case _:
                found = []
        yield from ((name, node) for name in found if not name.startswith("_"))
        if isinstance(node, ast.ClassDef | ast.If | ast.Try):
            yield from public_names_in(node.body)


# Public names that nothing in grader/ uses, and who does.
USED_FROM_OUTSIDE = {
    "load_ipython_extension": "IPython, by `%load_ext grader`",
    "return_": "the command `return`",
    **dict.fromkeys(
        ("list_commands", "get_command", "resolve_command", "format_commands"), "click"
    ),
    "flatten_mapping": "PyYAML",
    "writelines": "whoever writes to a text stream",
    "answers_of": "the tests of the diagnosis, which ask single programs",
}
HOOKS = ("pytest_", "visit_")  # pytest and `ast.NodeVisitor` call what is named so


@pytest.mark.slow
def test_what_is_public_is_used_somewhere() -> None:
    trees = {
        path: ast.parse(path.read_text("utf-8")) for path in sorted((ROOT / "grader").rglob("*.py"))
    }
    used: Counter[str] = Counter()
    for tree in trees.values():
        used.update(names_used_in(tree))
    elsewhere = [*(ROOT / "grader").rglob("*.j2"), *(ROOT / "reference").rglob("*.py")]
    words = {
        word for path in elsewhere for word in re.findall(r"\w+", path.read_text("utf-8"))
    } | USED_FROM_OUTSIDE.keys()
    unused = [
        f"{path.relative_to(ROOT)}:{node.lineno} {name}"
        for path, tree in trees.items()
        for name, node in public_names_in(tree.body)
        if name not in words
        and not name.startswith(HOOKS)
        and used[name] == names_used_in(node)[name]  # by nothing but itself
    ]
    assert unused == []


def test_what_is_called_worker_or_zygote_is_in_the_file_of_that_name() -> None:
    assert (Worker.__module__, Zygote.__module__) == (
        "grader.sandbox.host.worker",
        "grader.sandbox.host.zygote",
    )


def packages() -> dict[str, set[str]]:
    """Each package of the project, with the names of what is in it."""
    found = {}
    for init in sorted((ROOT / "grader").rglob("__init__.py")):
        name = ".".join(init.parent.relative_to(ROOT).parts)
        modules = {path.stem for path in init.parent.glob("*.py")} - {"__init__"}
        found[name] = modules | {path.parent.name for path in init.parent.glob("*/__init__.py")}
    return found


def test_every_module_is_in_an_import_contract() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    covered = {}
    for contract in settings["tool"]["importlinter"]["contracts"]:
        if contract["type"] == "layers":
            (container,) = contract["containers"]
            assert contract["exhaustive"], container
            covered[container] = {
                name for row in contract["layers"] for name in re.split(r" [|:] ", row)
            }
            assert len(contract["layers"]) <= 12, container
    assert covered == packages()


def test_no_pattern_repeats_a_group_possessively() -> None:
    """Python 3.11.0 to 3.11.4 match `(…)*+` wrongly; `(?>(…)*)` means the same everywhere."""
    for path in sorted((ROOT / "grader").rglob("*.py")):
        assert not re.findall(r"(?<!\\)\)[*+?]\+.*", path.read_text("utf-8")), path


def test_the_architecture_page_shows_every_room() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    tree = page.split("```")[1]
    shown = set(re.findall(r"\b[a-z_0-9]+\b", re.sub(r"#.*", "", tree)))
    wanted = {name for names in packages().values() for name in names}
    assert wanted - shown == set()


def test_a_room_says_what_it_is_for_in_a_few_lines() -> None:
    for name in packages():
        init = ROOT.joinpath(*name.split("."), "__init__.py")
        doc = ast.get_docstring(ast.parse(init.read_text("utf-8")))
        assert doc, name
        assert len(doc.splitlines()) <= 6, name


def start(script: Path, option: str) -> Said:
    """Start a script, which must end soon; return what it said."""
    command, pipe = [sys.executable, str(script), option], subprocess.PIPE
    with warm_popen()(command, stdout=pipe, stderr=pipe, text=True, cwd=ROOT) as run:
        try:
            out, err = run.communicate(timeout=120)
        finally:
            run.kill()
        return Said(run.returncode, out, err)


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_script_prints_its_help_and_refuses_an_unknown_option(script: Path) -> None:
    doc = ast.get_docstring(ast.parse(script.read_text("utf-8"))) or ""
    said = start(script, "--help")
    assert (said.code, said.out.startswith(f"usage: {script.name} ")) == (0, True), said
    shown = "\n".join(re.findall(r"^    python .*", doc, re.MULTILINE))
    assert set(re.findall(r"--[a-z-]+", shown)) <= set(re.findall(r"--[a-z-]+", said.out))
    assert "".join(doc.splitlines()[0].split()) in "".join(said.out.split())
    said = start(script, "--no-such-option")
    assert (said.code, said.out) == (2, ""), said
    assert "unrecognized arguments: --no-such-option" in said.err


PIP = """#!/bin/sh
echo "$@" >>{calls}
case "$*" in *--index-url*) exit 1 ;; esac
"""


@pytest.mark.parametrize("chosen", ["", "TORCH_INDEX="])
def test_make_installs_torch_without_cuda_unless_that_is_asked_for(
    chosen: str, tmp_path: Path
) -> None:
    """If its index does not answer, as here, torch comes from where pip looks otherwise."""
    calls, python = tmp_path / "calls", tmp_path / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(PIP.format(calls=calls))
    python.chmod(0o755)
    stamp = tmp_path / "venv" / ".installed"
    command = ["make", "--silent", f"VENV={stamp.parent}", stamp, *filter(None, [chosen])]
    subprocess.run(command, cwd=ROOT, check=True)
    *first, last = calls.read_text().splitlines()
    assert last.endswith(" -e .")
    assert len(first) == (not chosen)
    assert all(
        call.endswith("--index-url https://download.pytorch.org/whl/cpu torch") for call in first
    )
    assert stamp.is_file()
