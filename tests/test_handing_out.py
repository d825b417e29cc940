"""What students get: the installed grader with its course, `init`, and what is handed out."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest
import yaml
from autograding import fits, load
from commandline import Cli

from grader.commands.bringing import LIST
from grader.commands.own_wheel import WHEEL_NAME
from grader.course.course import Course

pytestmark = pytest.mark.in_turn

ROOT = Path(__file__).parent.parent
ANSWERS = ("reference", "mistakes.toml", "solution.py", "test_hidden.py", "statement.md")


# --- the installed grader -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the sdist of this checkout."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return folder


def packed_files(built: Path) -> dict[str, set[str]]:
    (wheel,), (sdist,) = built.glob("*.whl"), built.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive, tarfile.open(sdist) as tar:
        inside = {name.partition("/")[2] for name in tar.getnames()}
        return {"wheel": set(archive.namelist()), "sdist": inside}


@pytest.mark.slow
def test_wheel_and_sdist_hold_the_engine_and_the_students_course(
    built: Path, course: Course
) -> None:
    found = packed_files(built)
    modules = {str(path.relative_to(ROOT)) for path in (ROOT / "grader").rglob("*.py")}
    exercises = {
        str(path.relative_to(ROOT))
        for path in course.student_folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert modules <= found["wheel"]
    assert {f"grader/students/{name}" for name in exercises} <= found["wheel"]
    assert modules | exercises <= found["sdist"]
    for names in found.values():
        assert [name for name in names for part in ANSWERS if part in Path(name).parts] == []
        assert [name for name in names if name.startswith("tests/") or "__pycache__" in name] == []


@pytest.fixture(scope="module")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder outside the repository in which the wheel is installed."""
    folder = tmp_path_factory.mktemp("site")
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


@pytest.mark.slow
def test_a_student_gets_from_the_install_to_the_first_green(
    installed: Path, tmp_path: Path, solutions: dict[str, str]
) -> None:
    """`init`, a stub, a wrong solution with its mistake named, a hint, and a right solution."""
    environment = {**os.environ, "PYTHONPATH": str(installed), "PYTHONSAFEPATH": "1"}

    def grader(*arguments: str, at: Path = tmp_path) -> str:
        command = [sys.executable, "-m", "grader", *arguments]
        run = subprocess.run(
            command, cwd=at, env=environment, capture_output=True, text=True, check=False
        )
        assert run.returncode in (0, 1), run.stderr
        return run.stdout

    place = "import grader; print(grader.__file__)"
    where = subprocess.run(
        [sys.executable, "-c", place],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert Path(where.strip()).is_relative_to(installed)
    said = grader()
    assert "A course on attention and Transformers that grades itself." in said
    begin = said.split("Begin here:\n")[1].splitlines()
    commands = ["grader init", "grader batch SUBMISSIONS --out results/", "grader new NAME"]
    assert [line.split("   ")[0].strip() for line in begin] == commands
    assert "grader check dictionary_lookup" in grader("init")
    work = tmp_path / "attention"
    assert "next: grader check dictionary_lookup" in grader(at=work)
    file = work / "exercises" / "dictionary_lookup.py"
    text = solutions["dictionary_lookup"]
    file.write_text(text.replace("scores / temp, dim=-1", "scores / temp, dim=-2"))
    assert "→ The softmax runs over the queries" in grader("check", at=work)
    assert "on your mistake" in grader("hint", at=work)
    file.write_text(text)
    said = grader("check", "exercises/dictionary_lookup.py", at=work)
    assert "12 / 12" in said
    assert "next: grader check masked_softmax" in grader(at=work)


# --- init -----------------------------------------------------------------------------------------


def test_init_never_overwrites_what_a_student_wrote(
    cli: Cli, course: Course, tmp_path: Path
) -> None:
    assert "wrote 31 files" in cli("init", tmp_path / "mine").out
    file = tmp_path / "mine" / "exercises" / "layer_norm.py"
    file.write_text("my own work\n")
    (file.parent / "masked_softmax.py").unlink()
    said = cli("init", tmp_path / "mine").out
    assert "wrote 1 file to" in said
    assert "left 1 file as they are" in said
    assert file.read_text() == "my own work\n"


def test_init_takes_another_course_and_refuses_its_own_folder(
    cli: Cli, tiny_copy: Path, tmp_path: Path
) -> None:
    cli("build", "--course", tiny_copy)
    assert cli("init", tmp_path / "mine", "--course", tiny_copy).code == 0
    assert (tmp_path / "mine" / "exercises" / "scale.py").is_file()
    said = cli("init", tiny_copy, "--course", tiny_copy)
    assert (said.code, "is the course itself" in said.err) == (2, True)


def test_init_within_a_course_brings_that_one_up_to_date(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    cli("init")
    monkeypatch.chdir(tmp_path / "attention" / "exercises")
    assert "is up to date" in cli("init").out
    assert not (tmp_path / "attention" / "exercises" / "attention").exists()
    monkeypatch.chdir(tmp_path)
    assert cli().out == "cd attention\n"


def test_init_of_another_course_takes_a_folder_of_its_own(
    cli: Cli, tiny_copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli("build", "--course", tiny_copy)
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path / "home")
    cli("init")
    assert cli("init", "--course", tiny_copy).code == 0
    assert (tmp_path / "home" / "tiny" / "exercises" / "scale.py").is_file()
    monkeypatch.chdir("attention")
    cli("init", "--course", tiny_copy)
    assert Path("tiny", "exercises", "scale.py").is_file()
    assert not Path("exercises", "scale.py").exists()
    monkeypatch.chdir("tiny")
    assert "is up to date" in cli("init", "--course", tiny_copy).out


def test_the_next_exercise_is_the_one_that_was_begun(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli("init", tmp_path / "mine")
    monkeypatch.chdir(tmp_path / "mine")
    assert cli("hint").out.startswith("dictionary_lookup:\nhint 1")
    file = tmp_path / "mine" / "exercises" / "layer_norm.py"
    file.write_text(file.read_text() + "\n\ndef mean(x):\n    return x.mean(-1)\n")
    assert cli("hint").out.startswith("layer_norm:\nhint 1")
    assert cli("hint", "feed_forward.py").out.startswith("hint 1")


def test_init_into_a_file_says_so(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("")
    said = cli("init", tmp_path / "mine")
    assert (said.code, "choose another folder" in said.err) == (2, True)


# --- handout --------------------------------------------------------------------------------------


@pytest.fixture
def handed(cli: Cli, tiny_copy: Path, tmp_path: Path) -> Path:
    """The students' repository of the tiny course."""
    cli("build", "--course", tiny_copy)
    folder = tmp_path / "homework"
    assert cli("handout", folder, "--course", tiny_copy, "--ci", "practice").code == 0
    return folder


def test_a_handout_holds_what_students_need_and_no_answer(handed: Path) -> None:
    names = {str(path.relative_to(handed)) for path in handed.rglob("*") if path.is_file()}
    assert names == {
        *("README.md", "requirements.txt", ".gitignore", LIST, ".github/workflows/grader.yml"),
        *("exercises/README.md", "exercises/course.json", "exercises/scale.py"),
        *("exercises/path.svg", "exercises/tests/test_scale.py", WHEEL_NAME),
        *(".devcontainer/devcontainer.json", ".vscode/tasks.json"),
    }
    files = [path for path in handed.rglob("*") if path.is_file() and path.name != WHEEL_NAME]
    text = "\n".join(path.read_text() for path in files)
    assert "return x * factor" not in text
    for system in ("Linux", "macOS", "Windows", "Colab"):
        assert f"**{system}" in text or f"**Google {system}" in text


def change(course: Path, file: str, old: str, new: str) -> None:
    path = course / "reference" / "scale" / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


def work_on(handed: Path) -> tuple[Path, str]:
    """Change a student's file; return its path and its text."""
    path = handed / "exercises" / "scale.py"
    path.write_text(path.read_text() + "# mine\n")
    return path, path.read_text()


def test_an_update_replaces_only_what_nobody_has_changed(
    cli: Cli, handed: Path, tiny_copy: Path
) -> None:
    mine, work = work_on(handed)
    change(tiny_copy, "test_public.py", "Twice 1 is 2.", "Twice one is two.")
    said = cli("handout", handed, "--course", tiny_copy, "--update")
    assert (said.code, "grader build" in said.err) == (2, True)
    cli("build", "--course", tiny_copy)
    said = cli("handout", handed, "--course", tiny_copy, "--update")
    assert said.code == 0
    assert "updated 1 file that nobody had changed" in said.out
    assert "left 1 file as they are" in said.out
    assert "Twice one is two." in (handed / "exercises" / "tests" / "test_scale.py").read_text()
    assert mine.read_text() == work
    again = cli("handout", handed, "--course", tiny_copy, "--update").out
    assert "updated" not in again


def test_what_both_changed_is_named_and_the_work_stays(
    cli: Cli, handed: Path, tiny_copy: Path
) -> None:
    mine, work = work_on(handed)
    statement = tiny_copy / "reference" / "scale" / "statement.md"
    statement.write_text(statement.read_text() + "\nOne more promise.\n")
    cli("build", "--course", tiny_copy)
    said = cli("handout", handed, "--course", tiny_copy, "--update")
    assert "scale.py was changed here and in the course" in said.out
    assert mine.read_text() == work
    assert "One more promise." in mine.with_name("scale.new.py").read_text()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [((), "was handed out before"), (("--update",), "was not handed out")],
)
def test_an_update_is_asked_for_where_it_is_one(
    arguments: tuple[str, ...], says: str, cli: Cli, handed: Path, tiny_copy: Path
) -> None:
    folder = handed if not arguments else handed.parent / "another"
    said = cli("handout", folder, "--course", tiny_copy, *arguments)
    assert (said.code, says in said.err) == (2, True)


def test_line_ends_that_git_rewrites_are_no_change(cli: Cli, handed: Path, tiny_copy: Path) -> None:
    stub = handed / "exercises" / "scale.py"
    stub.write_bytes(stub.read_bytes().replace(b"\n", b"\r\n"))
    assert "up to date" in cli("handout", handed, "--course", tiny_copy, "--update").out


# --- in an editor ---------------------------------------------------------------------------------

DEVCONTAINER = {  # the part of the specification that we use: https://containers.dev
    "name": str,
    "image": str,
    "containerEnv": dict,
    "postCreateCommand": str,
    "customizations": dict,
}


def test_a_container_for_development_fits_its_specification(handed: Path) -> None:
    for root in (handed, ROOT):
        told = load(root / ".devcontainer" / "devcontainer.json")
        fits(told, DEVCONTAINER)
        fits(told["customizations"]["vscode"], {"extensions": list, "settings": dict})
    assert load(handed / ".devcontainer" / "devcontainer.json")["postCreateCommand"] == (
        "python -m pip install -r requirements.txt"
    )


def test_the_tasks_of_an_editor_underline_what_is_wrong(
    cli: Cli, handed: Path, tiny_solution: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = handed / "exercises" / "scale.py"
    file.write_text(tiny_solution.replace("return x * factor", "return x[99]"))
    subprocess.run(["git", "init", "-q", handed], check=True)
    monkeypatch.chdir(handed)
    tasks = load(handed / ".vscode" / "tasks.json")["tasks"]
    assert len(tasks) == 2
    for task in tasks:
        module, name, *arguments = task["args"]
        assert (module, name) == ("-m", "grader")
        said = cli(*(each.replace("${file}", str(file)) for each in arguments)).out
        pattern = task["problemMatcher"]["pattern"]
        (found,) = filter(None, (re.match(pattern["regexp"], line) for line in said.splitlines()))
        assert found[pattern["file"]] == "exercises/scale.py"
        assert "x[99]" in file.read_text().splitlines()[int(found[pattern["line"]]) - 1]
        assert found[pattern["message"]].startswith("your code raised IndexError")


# --- a push is checked ----------------------------------------------------------------------------


@pytest.mark.slow
def test_the_steps_of_the_workflow_run(handed: Path, tiny_solution: str, tmp_path: Path) -> None:
    workflow = yaml.safe_load((handed / ".github" / "workflows" / "grader.yml").read_text())
    steps = {step["name"]: step for step in workflow["jobs"]["check"]["steps"] if "name" in step}
    assert workflow["permissions"] == {"contents": "read"}
    install = 'python -P -m pip install --no-cache-dir "$GRADER" "$TORCH"'
    assert steps["Install"]["run"] == install
    assert workflow["env"]["GRADER"] in (handed / "requirements.txt").read_text().splitlines()
    wrong = tiny_solution.replace("return x * factor", "return x + factor")
    (handed / "exercises" / "scale.py").write_text(wrong)
    summary = tmp_path / "summary.md"
    scripts = Path(sys.executable).parent
    environment = {**os.environ, "GITHUB_STEP_SUMMARY": str(summary), "GITHUB_ACTIONS": "true"}
    environment["RUNNER_TEMP"] = str(tmp_path)
    environment["PATH"] = f"{scripts}{os.pathsep}{environment['PATH']}"
    run = subprocess.run(
        ["bash", "-e", "-c", steps["Check"]["run"]],
        cwd=handed,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 1, run.stderr
    (remark,) = [line for line in run.stdout.splitlines() if line.startswith("::error ")]
    assert remark.startswith(
        "::error file=exercises/scale.py,line=7,title=Scale%3A 0 of 8 points::"
    )
    assert "0 / 8" in summary.read_text()
    assert (tmp_path / "report.html").is_file()


# --- what students install ------------------------------------------------------------------------


def install(handed: Path, site: Path) -> subprocess.CompletedProcess[str]:
    """Install what the hand-out's requirements say of the grader, without a network."""
    lines = (handed / "requirements.txt").read_text().splitlines()
    (grader,) = [line for line in lines if "whl#" in line]
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    return subprocess.run(
        [*pip, "--target", str(site), grader],
        cwd=handed,
        capture_output=True,
        text=True,
        check=False,
    )


def fresh_environment(folder: Path) -> Path:
    """Make an environment that has all packages of this one but the grader; return its Python."""
    venv.create(folder)
    (site,) = folder.rglob("site-packages")
    for package in Path(sysconfig.get_path("purelib")).iterdir():
        is_grader = package.name == "grader" or package.name.startswith("attention_grader")
        if not is_grader and package.suffix != ".pth":
            (site / package.name).symlink_to(package)
    return next(folder.glob("*/python"))


@pytest.mark.slow
def test_a_student_installs_the_grader_that_was_handed_out(
    handed: Path, tiny_solution: str, tmp_path: Path
) -> None:
    """Without a network, and with every line of the requirements."""
    python = fresh_environment(tmp_path / "fresh")
    (handed / "exercises" / "scale.py").write_text(tiny_solution)

    def run(*words: str, at: Path = handed) -> subprocess.CompletedProcess[str]:
        command = [str(python), "-m", *words]
        return subprocess.run(command, cwd=at, capture_output=True, text=True, check=False)

    assert "No module named" in run("grader", "--version").stderr
    done = run("pip", "install", "--quiet", "--no-index", "-r", "requirements.txt")
    assert done.returncode == 0, done.stderr
    assert run("grader", "check", "scale").returncode == 0
    said = run("grader", "init", at=tmp_path)  # the course that the grader brings along
    assert said.returncode == 0, said.stderr
    assert (tmp_path / "attention" / "exercises" / "masked_softmax.py").is_file()


@pytest.mark.slow
def test_another_grader_than_the_one_handed_out_is_not_installed(
    handed: Path, tmp_path: Path
) -> None:
    with zipfile.ZipFile(handed / WHEEL_NAME, "a") as wheel:
        wheel.writestr("grader/more.py", "")
    done = install(handed, tmp_path / "site")
    assert done.returncode != 0
    assert "DO NOT MATCH THE HASHES" in done.stderr
    assert not (tmp_path / "site" / "grader").exists()


def test_a_teacher_may_say_where_the_grader_is(cli: Cli, tiny_copy: Path, tmp_path: Path) -> None:
    cli("build", "--course", tiny_copy)
    address = f"https://school.example/{WHEEL_NAME}#sha256={'0a' * 32}"
    folder = tmp_path / "homework"
    handout = ("handout", folder, "--course", tiny_copy)
    said = cli(*handout, "--grader", address.partition("#")[0])
    assert (said.code, "sha256" in said.err) == (2, True)
    assert cli(*handout, "--grader", address, "--ci", "practice").code == 0
    for _ in range(2):
        for file in ("requirements.txt", KINDS["github"]):
            assert address in (folder / file).read_text()
        assert not list(folder.glob("*.whl"))
        assert cli(*handout, "--update").code == 0  # which keeps it


def test_the_grader_of_an_earlier_version_is_named_for_deletion(
    cli: Cli, handed: Path, tiny_copy: Path
) -> None:
    (handed / "attention_grader-0.1.0-py3-none-any.whl").write_bytes(b"")
    said = cli("handout", handed, "--course", tiny_copy, "--update").out
    assert "attention_grader-0.1.0-py3-none-any.whl: it is another version" in said


def test_students_install_torch_without_cuda_by_default(handed: Path) -> None:
    lines = (handed / "requirements.txt").read_text().splitlines()
    assert "--extra-index-url https://download.pytorch.org/whl/cpu" in lines
    assert any("If you have a GPU" in line for line in lines)


KINDS = {"github": ".github/workflows/grader.yml", "gitlab": ".gitlab-ci.yml"}


@pytest.mark.parametrize("host", KINDS)
@pytest.mark.parametrize("kind", ["practice", "required"])
def test_an_update_keeps_to_the_workflow_that_was_chosen(
    kind: str, host: str, cli: Cli, tiny_copy: Path, tmp_path: Path
) -> None:
    cli("build", "--course", tiny_copy)
    handout = ("handout", tmp_path / "homework", "--course", tiny_copy)
    said = cli(*handout, "--ci", kind, "--host", host)
    assert said.code == 0
    assert ("students cannot change it" in said.out) == (kind == "required")
    workflow = tmp_path / "homework" / KINDS[host]
    text = workflow.read_text()
    assert f"--ci {kind}" in text
    assert "is up to date" in cli(*handout, "--update").out
    workflow.write_text(f"{text}# mine\n")
    cli(*handout, "--update")
    assert workflow.read_text() == f"{text}# mine\n"
    assert len([path for path in KINDS.values() if (tmp_path / "homework" / path).exists()]) == 1


def test_an_update_changes_the_kind_and_adds_a_host(
    cli: Cli, handed: Path, tiny_copy: Path
) -> None:
    handout = ("handout", handed, "--course", tiny_copy, "--update")
    assert cli(*handout, "--ci", "required").code == 0
    assert "--ci required" in (handed / KINDS["github"]).read_text()
    assert cli(*handout, "--ci", "gitlab").code == 2
    assert cli(*handout, "--ci", "practice", "--host", "gitlab").code == 0
    assert "--ci practice" in (handed / KINDS["gitlab"]).read_text()
    assert "--ci required" in (handed / KINDS["github"]).read_text()


def test_notebooks_open_on_colab_where_the_address_is_known(
    cli: Cli, tiny_copy: Path, tmp_path: Path
) -> None:
    cli("build", "--course", tiny_copy)
    homework = tmp_path / "homework"
    notebook = homework / "exercises" / "notebooks" / "scale.ipynb"
    handout = ("handout", homework, "--course", tiny_copy)
    place = "https://github.com/school/homework"
    assert cli(*handout, "--notebooks", "--address", f"{place}.git").code == 0
    badge, setup = json.loads(notebook.read_text())["cells"][:2]
    opened = "https://colab.research.google.com/github/school/homework/blob/main/exercises"
    assert f"({opened}/notebooks/scale.ipynb)" in "".join(badge["source"])
    assert f"git clone -q {place} " in "".join(setup["source"])
    assert f"!git clone {place} homework" in (homework / "README.md").read_text()
    assert "is up to date" in cli(*handout, "--update").out
    assert cli(*handout, "--update", "--address", f"{place}/tree/term").code == 0
    assert "/homework/blob/term/exercises" in notebook.read_text()
    assert "is up to date" in cli(*handout, "--update").out
    place = homework / "exercises" / "notebooks"
    assert "not started" in cli("check", place, "--course", tiny_copy).out
    said = cli(*handout, "--update", "--address", "http://example.org/homework")
    assert (said.code, "is not https://github.com/OWNER/NAME" in said.err) == (2, True)


def test_a_notebook_without_an_address_has_no_button(
    cli: Cli, tiny_copy: Path, tmp_path: Path
) -> None:
    cli("build", "--course", tiny_copy)
    assert cli("handout", tmp_path / "h", "--notebooks", "--course", tiny_copy).code == 0
    texts = [path.read_text() for path in (tmp_path / "h" / "exercises").rglob("*.ipynb")]
    assert len(texts) == 2
    assert not any("colab.research" in text for text in texts)


def test_a_host_without_a_workflow_is_named(cli: Cli, tiny_copy: Path, tmp_path: Path) -> None:
    cli("build", "--course", tiny_copy)
    said = cli("handout", tmp_path / "homework", "--course", tiny_copy, "--host", "gitlab")
    assert (said.code, "--ci practice --host gitlab" in said.err) == (2, True)


PRINTS = (
    "::error::forged",
    "  ::add-mask::100",
    "##[command]forged",
    "::stop-commands::x",
    "::x::",
)


def test_what_students_print_gives_the_runner_no_orders(
    cli: Cli, tiny_copy: Path, tiny_solution: str
) -> None:
    prints = "".join(f"print({text!r})\n" for text in PRINTS)
    raising = f"raise ValueError({'%0A'.join(PRINTS)!r} + chr(10) + {PRINTS[0]!r})"
    work = tiny_copy / "s001" / "scale.py"
    work.parent.mkdir()
    work.write_text(prints + tiny_solution.replace("return x * factor", raising))
    said = cli("check", work.parent, "--course", tiny_copy, "--format", "github").out
    lines = said.splitlines()
    assert lines[0].startswith("::stop-commands::grader-")
    end = lines.index(f"::{lines[0].removeprefix('::stop-commands::')}::")
    orders = [line for line in lines[end + 1 :] if line.lstrip().startswith("::")]
    assert [order.partition(" ")[0] for order in orders] == ["::error"]
    assert lines[end + 1 :] == orders
    assert "##[" not in said


def test_other_formats_are_written_beside_the_first(
    cli: Cli, tiny_copy: Path, tiny_solution: str, tmp_path: Path
) -> None:
    (tiny_copy / "scale.py").write_text(tiny_solution)
    page, cases, data = (tmp_path / name for name in ("page.html", "cases.xml", "report.json"))
    also = [f"--also=html={page}", f"--also=junit={cases}", f"--also=json={data}"]
    said = cli("check", tiny_copy / "scale.py", "--course", tiny_copy, *also)
    assert said.code == 0
    assert page.read_text().startswith("<!doctype html>")
    assert "<testsuites" in cases.read_text()
    assert json.loads(data.read_text())["points"] == 8
    said = cli("check", "--course", tiny_copy, "--also", "pdf=x")
    assert (said.code, "is not FORMAT=FILE" in said.err) == (2, True)
    said = cli("check", tiny_copy / "scale.py", "--course", tiny_copy, "--also", f"html={page}/x")
    assert said.code == 2
