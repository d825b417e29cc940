"""What runs on GitHub and GitLab, and our own workflow: files fit their formats, and steps run."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from classroom import Instant
from commandline import Cli

from grader.commands.handout import CI
from grader.course.bundle import KEY_VARIABLE, new_key

ROOT = Path(__file__).parent.parent
ACTION = ROOT / "action.yml"
WORKFLOW = ROOT / ".github" / "workflows" / "ci.yml"
PAGE = ROOT / "docs" / "ci.md"
BIN = Path(sys.executable).parent
MOST_IN_A_SUMMARY = 1 << 20  # bytes that GitHub shows of a step
# Code that fails, and says as much as it can while it does.
LOUD = """
LINE = "x" * 20_000

def scale(x, factor):
    print("::error::forged\\n" + LINE * 1000)
    raise ValueError("::set-output name=x::" + LINE + LINE)  # {padding}


class Scale:
    def __init__(self, *sizes):
        raise ValueError(LINE)
""".replace("{padding}", "y" * 10_000)


def page_workflow() -> str:
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    return str(text)


@pytest.fixture
def handed(cli: Cli, tiny_copy: Path, tmp_path: Path) -> Path:
    """The students' repository of the tiny course, for GitHub and for GitLab."""
    cli("build", "--course", tiny_copy)
    folder = tmp_path / "homework"
    assert cli("handout", folder, "--course", tiny_copy, "--ci", "github").code == 0
    said = cli("handout", folder, "--course", tiny_copy, "--ci", "gitlab", "--update")
    assert said.code == 0
    return folder


# --- formats --------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("schema", ["github-actions", "github-workflows", "gitlab-ci"])
def test_every_file_fits_the_published_schema(schema: str, handed: Path, tmp_path: Path) -> None:
    example = tmp_path / "example.yml"
    example.write_text(page_workflow())
    files = {
        "github-actions": [ACTION],
        "github-workflows": [WORKFLOW, handed / CI["github"], example],
        "gitlab-ci": [handed / CI["gitlab"]],
    }[schema]
    command = [str(BIN / "check-jsonschema"), "--builtin-schema", f"vendor.{schema}"]
    done = subprocess.run([*command, *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_files_use_the_same_release_of_each_action(handed: Path) -> None:
    texts = [ACTION.read_text(), WORKFLOW.read_text(), page_workflow()]
    texts.append((handed / CI["github"]).read_text())
    used = set(re.findall(r"uses: (actions/[\w-]+)@(\S+)", "\n".join(texts)))
    assert len({name for name, _ in used}) == len(used)


# --- the action -----------------------------------------------------------------------------------


def steps_of(action: Path) -> dict[str, Any]:
    steps = yaml.safe_load(action.read_text())["runs"]["steps"]
    return {step["name"]: step for step in steps if "name" in step}


def inputs() -> dict[str, str]:
    """The defaults of the action's inputs."""
    known = yaml.safe_load(ACTION.read_text())["inputs"]
    return {f"${{{{ inputs.{name} }}}}": about["default"] for name, about in known.items()}


def run_step(
    step: Mapping[str, Any], cwd: Path, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a step as the runner does, with the defaults of the inputs."""
    own = {name: inputs().get(value, value) for name, value in step.get("env", {}).items()}
    environment = {**os.environ, **own, **variables}
    environment["PATH"] = f"{variables.get('PATH', BIN)}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_no_input_is_pasted_into_a_script() -> None:
    for step in steps_of(ACTION).values():
        assert "${{" not in step.get("run", "")
        assert "run" not in step or step["shell"] == "bash"


@pytest.mark.slow
@pytest.mark.parametrize(("case", "code"), [("right", 0), ("loud", 1)])
def test_the_action_checks_and_keeps_to_what_github_shows(
    case: str, code: int, handed: Path, tiny_solution: str, tmp_path: Path
) -> None:
    (handed / "exercises" / "scale.py").write_text(tiny_solution if case == "right" else LOUD)
    summary = tmp_path / "summary.md"
    done = run_step(steps_of(ACTION)["Check"], handed, GITHUB_STEP_SUMMARY=str(summary))
    assert done.returncode == code, done.stderr
    lines = done.stdout.splitlines()
    end = lines.index(f"::{lines[0].removeprefix('::stop-commands::')}::")
    orders = [line for line in lines[end + 1 :] if line.startswith("::")]
    assert [order.partition(" ")[0] for order in orders] == ["::error"] * code
    assert 0 < summary.stat().st_size < MOST_IN_A_SUMMARY / 10  # for each exercise
    assert (handed / "report.html").is_file()


@pytest.mark.slow
def test_the_action_takes_names_and_further_arguments(
    handed: Path, tiny_solution: str, tmp_path: Path
) -> None:
    (handed / "exercises" / "scale.py").write_text(tiny_solution)
    step = steps_of(ACTION)["Check"]
    assert step["env"].keys() == {"EXERCISES", "BUNDLE", "ARGUMENTS"}
    step["env"] = {"EXERCISES": "scale exercises", "BUNDLE": "", "ARGUMENTS": "--seed 41"}
    done = run_step(step, handed, GITHUB_STEP_SUMMARY=str(tmp_path / "summary.md"))
    assert "repeat with --seed 41" in done.stdout


@pytest.mark.slow
def test_the_action_grades_with_a_bundle(
    cli: Cli,
    handed: Path,
    tiny_copy: Path,
    tiny_solution: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    key = new_key()
    monkeypatch.setenv(KEY_VARIABLE, key)
    file = tmp_path / "a bundle"  # whose path is one word
    assert cli("bundle", "--out", file, "--course", tiny_copy).code == 0
    (handed / "exercises" / "scale.py").write_text(tiny_solution)
    step = steps_of(ACTION)["Check"]
    step["env"] = {"EXERCISES": "exercises", "BUNDLE": str(file), "ARGUMENTS": ""}
    secrets = {KEY_VARIABLE: key, "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md")}
    done = run_step(step, handed, **secrets)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "public checks" not in done.stdout


def test_the_action_installs_itself_and_names_its_cache(tmp_path: Path) -> None:
    steps, output = steps_of(ACTION), tmp_path / "output"
    output.touch()
    place = {"GITHUB_ACTION_PATH": str(ROOT), "GITHUB_OUTPUT": str(output)}
    done = run_step(steps["Name the cache"], tmp_path, **place)
    assert done.returncode == 0, done.stderr
    said = dict(line.split("=", 1) for line in output.read_text().splitlines())
    assert re.fullmatch(r"[0-9a-f]{40,64}", said["pins"])
    assert Path(said["folder"]).is_absolute()
    stub = tmp_path / "python"
    stub.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    stub.chmod(0o755)
    pins = str(ROOT / "constraints.txt")
    for bundle, wanted in (("", str(ROOT)), ("course.bundle", f"{ROOT}[bundle]")):
        step = {**steps["Install"], "env": {"BUNDLE": bundle}}
        done = run_step(step, tmp_path, PATH=str(tmp_path), **place)
        assert done.stdout.splitlines() == ["-P", "-m", "pip", "install", "-c", pins, wanted]
    assert (ROOT / "pyproject.toml").is_file()


def test_a_handed_out_workflow_asks_the_same_of_the_grader(handed: Path) -> None:
    jobs = yaml.safe_load((handed / CI["github"]).read_text())["jobs"]
    steps = {step["name"]: step for step in jobs["check"]["steps"] if "name" in step}
    asked = steps_of(ACTION)["Check"]["run"]
    bundle = '${BUNDLE:+--bundle "$BUNDLE"} '
    defaults = {"$EXERCISES": "exercises", "$ARGUMENTS ": "", bundle: ""}
    for name, value in defaults.items():
        asked = asked.replace(name, value)
    assert shlex.split(steps["Check"]["run"]) == shlex.split(asked)


def test_the_page_gives_the_action_what_it_takes() -> None:
    (job,) = yaml.safe_load(page_workflow())["jobs"].values()
    (step,) = [step for step in job["steps"] if "attention-grader" in step["uses"]]
    assert step["with"].keys() <= yaml.safe_load(ACTION.read_text())["inputs"].keys()


# --- GitLab ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_job_for_gitlab_writes_what_it_keeps(handed: Path, tiny_solution: str) -> None:
    job = yaml.safe_load((handed / CI["gitlab"]).read_text())["grader"]
    wrong = tiny_solution.replace("return x * factor", "return x + factor")
    (handed / "exercises" / "scale.py").write_text(wrong)
    install, check = job["script"]
    assert install == "python -m pip install -r requirements.txt"
    assert run_step({"run": check}, handed).returncode == 1
    kept = [*job["artifacts"]["paths"], job["artifacts"]["reports"]["junit"]]
    assert [name for name in kept if not (handed / name).is_file()] == []


# --- our own workflow -----------------------------------------------------------------------------


def test_our_workflow_runs_on_every_python_and_system_that_we_name() -> None:
    jobs = yaml.safe_load(WORKFLOW.read_text())["jobs"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    named = [line.rpartition(" ")[2] for line in project["classifiers"] if ":: 3." in line]
    students = jobs["students"]["strategy"]["matrix"]
    assert jobs["pythons"]["strategy"]["matrix"]["python"] == students["python"] == named
    assert [system.partition("-")[0] for system in students["system"]] == (
        ["ubuntu", "macos", "windows"]
    )


def test_our_workflow_names_only_what_is_there() -> None:
    text = WORKFLOW.read_text()
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for line in re.findall(r"make ([a-z -]+)", text):
        assert set(line.split()) <= set(targets)
    for program in re.findall(r"python (tests/\S+)", text):
        assert (ROOT / program).is_file()


# --- the page -------------------------------------------------------------------------------------


def test_the_commands_of_the_page_run(
    cli: Cli,
    instant: Instant,
    tiny_copy: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = tiny_copy / "reference" / "course.toml"
    settings.write_text(f"{settings.read_text()}due = 2040-01-01T00:00:00Z\n")
    cli("build", "--course", tiny_copy)
    clone(tiny_copy / "clones" / "homework-s001")
    clone(tiny_copy / "clones" / "homework-s002")
    monkeypatch.chdir(tiny_copy)
    key = new_key()
    blocks = re.findall(r"^ +(grader .*)$|`(grader [a-z]+ [^`]*)`", PAGE.read_text(), re.MULTILINE)
    asked = [alone or inside for alone, inside in blocks]
    assert len(asked) > 8
    for number, command in enumerate(asked):
        monkeypatch.setenv(KEY_VARIABLE, key)  # each command takes it
        words = shlex.split(command)[1:]
        words = [f"{word}-{number}" if "homework" in word else word for word in words]
        said = cli(*words)
        assert said.code in (0, 1), (command, said.err)
    assert (tmp_path / "pl-course" / "questions" / "scale" / "info.json").is_file()
    assert (tiny_copy / "gradescope.zip").is_file()
    assert (tmp_path / "autograder" / "autograder.py").is_file()
    assert instant.jobs


def clone(folder: Path) -> None:
    """Make a student's clone with one commit."""
    (folder / "exercises").mkdir(parents=True)
    (folder / "exercises" / "scale.py").write_text(f"# 4 points\n# {folder.name}\n")
    who = ["-c", "user.name=s", "-c", "user.email=s@school.example"]
    for words in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "work"]):
        subprocess.run(["git", *words], cwd=folder, check=True)


def test_the_page_has_three_steps_for_each_platform() -> None:
    parts = re.split(r"^## ", PAGE.read_text("utf-8"), flags=re.MULTILINE)
    sections = {part.partition("\n")[0]: part for part in parts}
    for platform in ("GitHub", "GitLab", "Classroom 50", "Gradescope", "PrairieLearn"):
        steps = re.findall(r"^(\d)\. ", sections[platform], re.MULTILINE)
        assert steps == ["1", "2", "3"], platform
