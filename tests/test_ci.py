"""What runs on GitHub and GitLab, and our own workflow: files fit their formats, and steps run."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml
from classroom import Instant
from commandline import Cli

from grader.commands.handout import CI
from grader.course.bundle import KEY_VARIABLE, new_key

pytestmark = pytest.mark.in_turn

ROOT = Path(__file__).parent.parent
ACTION = ROOT / "action.yml"
WORKFLOW = ROOT / ".github" / "workflows" / "ci.yml"
DEPENDABOT = ROOT / ".github" / "dependabot.yml"
PAGE = ROOT / "docs" / "ci.md"
WRITTEN = ROOT / "grader" / "commands" / "handout_files"
PINNED = re.compile(r"[\w/-]+@[0-9a-f]{40} # v\d+(\.\d+)*")
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
    return handed_out(cli, tiny_copy, tmp_path / "homework", "practice")


@pytest.fixture
def required(cli: Cli, tiny_copy: Path, tmp_path: Path) -> Path:
    """The same with the workflows that students cannot change."""
    cli("build", "--course", tiny_copy)
    return handed_out(cli, tiny_copy, tmp_path / "required", "required")


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> str:
    """The key of the course, which is in the environment."""
    monkeypatch.setenv(KEY_VARIABLE, key := new_key())
    return key


@pytest.fixture
def bundle(key: str, cli: Cli, tiny_copy: Path, tmp_path: Path) -> Path:
    """The tiny course under this key, at a path that a shell must not split."""
    file = tmp_path / "a bundle"
    assert cli("bundle", "--out", file, "--course", tiny_copy).code == 0
    return file


def handed_out(cli: Cli, course: Path, folder: Path, kind: str) -> Path:
    command = ("handout", folder, "--course", course, "--ci", kind)
    assert cli(*command).code == 0
    assert cli(*command, "--host", "gitlab", "--update").code == 0
    return folder


# --- formats --------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "schema", ["github-actions", "github-workflows", "gitlab-ci", "dependabot"]
)
def test_every_file_fits_the_published_schema(
    schema: str, handed: Path, required: Path, tmp_path: Path
) -> None:
    example = tmp_path / "example.yml"
    example.write_text(page_workflow())
    files = {
        "github-actions": [ACTION],
        "github-workflows": [
            *(WORKFLOW, example, handed / CI["github"], required / CI["github"]),
        ],
        "gitlab-ci": [handed / CI["gitlab"], required / CI["gitlab"]],
        "dependabot": [DEPENDABOT],
    }[schema]
    command = [str(BIN / "check-jsonschema"), "--builtin-schema", f"vendor.{schema}"]
    done = subprocess.run([*command, *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def used_actions() -> list[str]:
    """What stands behind `uses:` in the repository, the action, the page and the templates."""
    files = [ACTION, PAGE, *(ROOT / ".github").rglob("*.yml"), *WRITTEN.glob("*.yml.j2")]
    texts = "\n".join(path.read_text("utf-8") for path in files)
    found = re.findall(r"^ *(?:- )?uses: *(.*)$", texts, re.MULTILINE)
    return [each for each in found if not each.startswith("OWNER/attention-grader@COMMIT # v")]


def test_every_action_is_pinned_by_commit_with_its_release_in_a_comment() -> None:
    assert len(used_actions()) > 10
    assert [each for each in used_actions() if not PINNED.fullmatch(each)] == []


def test_the_files_use_the_same_release_of_each_action() -> None:
    used = set(used_actions())
    assert len({each.partition("@")[0] for each in used}) == len(used)


def test_dependabot_keeps_the_actions_that_it_finds() -> None:
    (update,) = yaml.safe_load(DEPENDABOT.read_text())["updates"]
    assert (update["package-ecosystem"], update["directory"]) == ("github-actions", "/")


def jobs_steps(workflow: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load(workflow.read_text())["jobs"]["check"]["steps"])


def test_no_cache_is_used_where_a_student_could_fill_it(handed: Path, required: Path) -> None:
    files = [ACTION, *(folder / file for folder in (handed, required) for file in CI.values())]
    for file in files:
        text = re.sub(r"#.*", "", file.read_text())
        assert "cache" not in text.replace("--no-cache-dir", ""), file
        installs = re.findall(r"python .*?-m pip install(.*)", text)
        assert len(installs) == 1
        assert installs[0].startswith(" --no-cache-dir ")


def test_no_step_imports_from_the_checkout(handed: Path, required: Path) -> None:
    for file in (ACTION, *(each / place for each in (handed, required) for place in CI.values())):
        commands = re.findall(r"\bpython(?= -)(.*)", re.sub(r"#.*", "", file.read_text()))
        assert len(commands) == 2
        assert [each for each in commands if not each.startswith(" -P -m ")] == []
        assert "requirements.txt" not in file.read_text()


def test_reports_lie_outside_the_checkout_until_they_are_kept(handed: Path, required: Path) -> None:
    action = yaml.safe_load(ACTION.read_text())["runs"]["steps"]
    workflows = [jobs_steps(folder / CI["github"]) for folder in (handed, required)]
    for steps in (action, *workflows):
        by_name = {step["name"]: step for step in steps if "name" in step}
        kept = by_name["Keep the report"]["with"]["path"].splitlines()
        assert kept[0] == "${{ runner.temp }}/report.html"
        assert all(path.startswith("${{ runner.temp }}/") for path in kept)
        assert "html=$RUNNER_TEMP/report.html" in by_name["Check"]["run"]


def test_only_the_step_that_decrypts_has_the_key(required: Path) -> None:
    workflow = yaml.safe_load((required / CI["github"]).read_text())
    steps = jobs_steps(required / CI["github"])
    with_key = [step.get("name") for step in steps if KEY_VARIABLE in str(step)]
    assert with_key == ["Check"]
    assert KEY_VARIABLE not in str(workflow["env"])
    for step in yaml.safe_load(ACTION.read_text())["runs"]["steps"]:
        assert (step["env"][KEY_VARIABLE] == "") == (step.get("name") != "Check")


def test_the_required_workflow_runs_before_anything_of_a_students_is_there(
    required: Path,
) -> None:
    workflow = yaml.safe_load((required / CI["github"]).read_text())
    assert workflow[True] == "pull_request_target"  # `on`, as YAML reads it
    assert workflow["permissions"] == {"contents": "read"}
    steps = jobs_steps(required / CI["github"])
    checkouts = [step["with"] for step in steps if "checkout" in step.get("uses", "")]
    kinds = [step.get("name") or step["with"].get("path") for step in steps]
    assert kinds[1:4] == ["handed-out", "Install", "handed-in"]
    assert "ref" not in checkouts[0]  # the branch that has the workflow
    assert not any(checkout["persist-credentials"] for checkout in checkouts)
    pins = workflow["env"]["PINS"]
    assert f"torch=={version('torch').partition('+')[0]}" in pins
    for needed in ("cryptography", "msgspec", "pytest"):
        assert f"{needed}=={version(needed)}; python_version" in pins
    assert "attention-grader[bundle]" in steps[2]["run"]


def test_practice_says_that_it_is_worth_nothing_as_a_mark(handed: Path) -> None:
    summary = [step.get("run", "") for step in jobs_steps(handed / CI["github"])]
    assert any("worth nothing as a mark" in run and "STEP_SUMMARY" in run for run in summary)
    assert any("worth nothing as a mark" in line for line in gitlab_job(handed)["script"])


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


def runner_files(folder: Path) -> dict[str, str]:
    """What the runner gives a step to write to."""
    names = ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT")
    return {"RUNNER_TEMP": str(folder), **{name: str(folder / name) for name in names}}


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
    (handed / "report.html").symlink_to("/proc/self/environ")
    done = run_step(
        *(steps_of(ACTION)["Check"], handed),
        GITHUB_STEP_SUMMARY=str(summary),
        GITHUB_OUTPUT=str(tmp_path / "outputs.txt"),
        RUNNER_TEMP=str(tmp_path),
    )
    assert done.returncode == code, done.stderr
    outputs = (tmp_path / "outputs.txt").read_text().splitlines()
    assert f"passed={'true' if code == 0 else 'false'}" in outputs
    lines = done.stdout.splitlines()
    end = lines.index(f"::{lines[0].removeprefix('::stop-commands::')}::")
    orders = [line for line in lines[end + 1 :] if line.startswith("::")]
    assert [order.partition(" ")[0] for order in orders] == ["::error"] * code
    assert 0 < summary.stat().st_size < MOST_IN_A_SUMMARY / 10  # for each exercise
    assert (tmp_path / "report.html").read_text().startswith("<!doctype html>")


@pytest.mark.slow
def test_the_action_takes_names_and_further_arguments(
    handed: Path, tiny_solution: str, tmp_path: Path
) -> None:
    (handed / "exercises" / "scale.py").write_text(tiny_solution)
    step = steps_of(ACTION)["Check"]
    given = {"EXERCISES", "COURSE", "BUNDLE", "ARGUMENTS", "ALLOW_UNTOUCHED", KEY_VARIABLE}
    assert step["env"].keys() == given
    step["env"] |= {"EXERCISES": "scale exercises", "ARGUMENTS": "--seed 41"}
    done = run_step(step, handed, **runner_files(tmp_path))
    assert "repeat with --seed 41" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(("allowed", "code"), [("true", 0), ("false", 1)])
def test_the_action_lets_a_course_choose_what_an_untouched_template_is(
    allowed: str, code: int, handed: Path, tmp_path: Path
) -> None:
    step = steps_of(ACTION)["Check"]
    step["env"]["ALLOW_UNTOUCHED"] = allowed
    done = run_step(step, handed, **runner_files(tmp_path))
    assert done.returncode == code, done.stderr
    assert "::notice title=Not started::" in done.stdout


def test_no_two_jobs_of_a_run_name_their_report_alike() -> None:
    action = yaml.safe_load(ACTION.read_text())
    name = steps_of(ACTION)["Keep the report"]["with"]["name"]
    for part in ("inputs.artifact", "github.job", "strategy.job-index"):
        assert part in name
    ids = {step.get("id") for step in action["runs"]["steps"]}
    for output in action["outputs"].values():
        (step,) = re.findall(r"steps\.(\w+)\.outputs", output["value"])
        assert step in ids


@pytest.mark.slow
def test_the_action_grades_with_a_bundle(
    handed: Path, bundle: Path, key: str, tiny_solution: str, tmp_path: Path
) -> None:
    (handed / "exercises" / "scale.py").write_text(tiny_solution)
    step = steps_of(ACTION)["Check"]
    step["env"] |= {"BUNDLE": str(bundle), KEY_VARIABLE: key}
    done = run_step(step, handed, **runner_files(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "public checks" not in done.stdout


def test_the_action_installs_itself(tmp_path: Path) -> None:
    stub = tmp_path / "python"
    stub.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    stub.chmod(0o755)
    pins = str(ROOT / "constraints.txt")
    for bundle, wanted in (("", str(ROOT)), ("course.bundle", f"{ROOT}[bundle]")):
        step = {**steps_of(ACTION)["Install"], "env": {"BUNDLE": bundle}}
        done = run_step(step, tmp_path, PATH=str(tmp_path), GITHUB_ACTION_PATH=str(ROOT))
        options = ["-P", "-m", "pip", "install", "--no-cache-dir", "-c", pins]
        assert done.stdout.splitlines() == [*options, wanted], done.stderr
    assert (ROOT / "pyproject.toml").is_file()


@pytest.mark.slow
def test_the_required_workflow_grades_what_was_handed_in_with_the_bundle(
    required: Path, bundle: Path, key: str, tiny_solution: str, tmp_path: Path
) -> None:
    """Whatever else a student has committed: modules, a settled result, tests that pass."""
    workspace, temporary = tmp_path / "workspace", tmp_path / "temporary"
    handed_in = workspace / "handed-in"
    shutil.copytree(required, handed_in)
    temporary.mkdir()
    wrong = tiny_solution.replace("return x * factor", "return x + factor")
    (handed_in / "exercises" / "scale.py").write_text(wrong)
    (handed_in / "exercises" / "tests" / "test_scale.py").write_text("raise SystemExit(0)\n")
    for name in ("pip", "grader", "torch", "sitecustomize", "conftest"):
        (handed_in / f"{name}.py").write_text("raise SystemExit('imported')\n")
    (handed_in / "report.html").symlink_to("/proc/self/environ")
    steps = {step.get("name"): step for step in jobs_steps(required / CI["github"])}
    step = {**steps["Check"], "env": {KEY_VARIABLE: key, "BUNDLE": str(bundle)}}
    done = run_step(
        *(step, workspace / step["working-directory"]),
        GITHUB_ACTIONS="true",
        GITHUB_STEP_SUMMARY=str(temporary / "summary.md"),
        RUNNER_TEMP=str(temporary),
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "4 / 8" in done.stdout
    assert "public checks" not in done.stdout
    (remark,) = [line for line in done.stdout.splitlines() if line.startswith("::error ")]
    assert "file=exercises/scale.py" in remark
    assert "4 of 8" in (temporary / "summary.md").read_text()
    for path in temporary.iterdir():
        assert key not in path.read_text()
    assert (temporary / "report.html").read_text().startswith("<!doctype html>")


GH = """#!/bin/sh
# Stands in for GitHub's command: a pull request with the comments in comments.txt.
echo "$@" >>calls.txt
case "$*" in
"run download"*) mkdir report && cp long.md report/summary.md ;;
*--paginate*) cat comments.txt ;;
esac
"""


def test_one_comment_on_a_pull_request_is_updated_in_place(required: Path, tmp_path: Path) -> None:
    """By a job with a token of its own, which installs, checks out and imports nothing."""
    job = yaml.safe_load((required / CI["github"]).read_text())["jobs"]["comment"]
    assert job["permissions"] == {"actions": "read", "pull-requests": "write"}
    assert "vars.GRADER_COMMENT == 'yes'" in job["if"]
    (step,) = job["steps"]
    assert "python" not in step["run"]
    gh = tmp_path / "gh"
    gh.write_text(GH)
    gh.chmod(0o755)
    (tmp_path / "long.md").write_text("x" * 100_000)
    place = {"GITHUB_RUN_ID": "5", "RUNNER_TEMP": str(tmp_path), "PATH": str(tmp_path)}
    place |= {"REPOSITORY": "school/homework", "NUMBER": "3"}
    for known, wanted in (
        ("", "POST repos/school/homework/issues/3/comments"),
        ("17\n", "PATCH repos/school/homework/issues/comments/17"),
    ):
        (tmp_path / "comments.txt").write_text(known)
        (tmp_path / "calls.txt").unlink(missing_ok=True)
        shutil.rmtree(tmp_path / "report", ignore_errors=True)
        done = run_step({"run": step["run"]}, tmp_path, **place)
        assert done.returncode == 0, done.stderr
        assert wanted in (tmp_path / "calls.txt").read_text().splitlines()[-1]
        body = (tmp_path / "comment.md").read_text()
        assert body.startswith("<!-- attention-grader -->\nx")
        assert len(body) < 65536  # which GitHub takes


def test_the_page_gives_the_action_what_it_takes() -> None:
    (job,) = yaml.safe_load(page_workflow())["jobs"].values()
    (step,) = [step for step in job["steps"] if "attention-grader" in step["uses"]]
    assert step["with"].keys() <= yaml.safe_load(ACTION.read_text())["inputs"].keys()


# --- GitLab ---------------------------------------------------------------------------------------


def gitlab_job(folder: Path) -> dict[str, Any]:
    job = yaml.safe_load((folder / CI["gitlab"]).read_text())["grader"]
    assert isinstance(job, dict)
    return job


def run_gitlab_job(folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the lines of a job, as one script that ends with the first that fails; pip says so."""
    job = gitlab_job(folder)
    own = {name: str(value) for name, value in job["variables"].items()}
    (install,) = [line for line in job["script"] if "pip install" in line]
    lines = [line if line != install else "echo install" for line in job["script"]]
    place = {"CI_PROJECT_DIR": str(folder), "GITLAB_CI": "true"}
    return run_step({"run": "\n".join(lines)}, folder, **own, **place, **variables)


@pytest.mark.slow
@pytest.mark.parametrize("committed", ["a link", "a folder", "nothing"])
def test_the_job_for_gitlab_keeps_what_it_has_written_itself(
    committed: str, handed: Path, tiny_solution: str, tmp_path: Path
) -> None:
    wrong = tiny_solution.replace("return x * factor", "return x + factor")
    (handed / "exercises" / "scale.py").write_text(wrong)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "report.html").write_text("mine")
    if committed == "a link":
        (handed / "grader-report").symlink_to(elsewhere)
    elif committed == "a folder":
        (handed / "grader-report").mkdir()
        (handed / "grader-report" / "report.html").symlink_to(elsewhere / "report.html")
        (handed / "grader-report" / "junit.xml").symlink_to("/proc/self/environ")
    assert run_gitlab_job(handed).returncode == 1
    artifacts = gitlab_job(handed)["artifacts"]
    kept = [*artifacts["paths"], *artifacts["reports"].values()]
    for path in (handed / name for name in kept):
        assert path.is_file()
        assert not path.is_symlink()
    assert (elsewhere / "report.html").read_text() == "mine"


@pytest.mark.slow
def test_the_required_job_for_gitlab_takes_the_key_from_a_file(
    required: Path, bundle: Path, key: str, tiny_solution: str, tmp_path: Path
) -> None:
    key_file = tmp_path / "key"
    key_file.write_text(key)
    (required / "exercises" / "scale.py").write_text(tiny_solution)
    (required / "grader.py").write_text("raise SystemExit('imported')\n")
    place = {"GRADER_COURSE_BUNDLE": str(bundle), KEY_VARIABLE: str(key_file)}
    done = run_gitlab_job(required, **place)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "8 / 8" in done.stdout
    assert (required / "grader-report" / "junit.xml").is_file()
    as_variable = {**place, KEY_VARIABLE: key}  # of the wrong type: the log must not show it
    done = run_gitlab_job(required, **as_variable)
    assert (done.returncode, key in done.stdout + done.stderr) == (2, False)


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


def test_a_release_is_checked_before_it_is_hashed_and_says_what_is_left() -> None:
    command = ["make", "--dry-run", "--no-print-directory", "release"]
    plan = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    steps = (
        "grader build --check",
        "hatchling build",
        "twine check --strict",
        "check-wheel-contents",
        "cyclonedx-py",
    )
    places = [plan.index(step) for step in (*steps, "sha256sum", "Left for a person to do")]
    assert places == sorted(places)
    assert "twine upload" in plan.splitlines()[-1]
    assert "@echo" not in plan.splitlines()[-1]  # it is said, not done
    assert plan.splitlines()[-1].startswith("echo ")


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
