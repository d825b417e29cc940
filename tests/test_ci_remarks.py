"""What a job of GitHub or GitLab shows of a check: remarks at real lines, a summary, outputs."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

import nbformat
import pytest
from autograding import WRONG
from commandline import Cli, Said

from grader.course.bundle import KEY_VARIABLE, new_key

pytestmark = pytest.mark.in_turn

ROOT = Path(__file__).parent.parent
ORDER = re.compile(r"^::(error|notice) (?:(.*?))::(.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Order:
    """An order to GitHub's runner, as it reads it."""

    kind: str
    properties: Mapping[str, str]
    message: str

    @property
    def place(self) -> tuple[str | None, str | None]:
        return self.properties.get("file"), self.properties.get("line")


def unescaped(text: str) -> str:
    for escaped, sign in (("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        text = text.replace(escaped, sign)
    return text


@dataclass
class Job:
    """A job of GitHub in a checkout of the tiny course's hand-out, with all of its files."""

    cli: Cli
    checkout: Path
    files: Path

    def __call__(self, *arguments: object) -> Said:
        for file in ("summary.md", "outputs.txt"):
            (self.files / file).write_text("")
        also = {"markdown": "summary.md", "outputs": "outputs.txt"}
        also |= {"junit": "junit.xml", "codequality": "quality.json"}
        options = [f"--also={form}={self.files / name}" for form, name in also.items()]
        return self.cli("check", *arguments, "--format", "github", *options)

    @property
    def summary(self) -> str:
        return (self.files / "summary.md").read_text()

    @property
    def outputs(self) -> dict[str, str]:
        lines = (self.files / "outputs.txt").read_text().splitlines()
        return dict(line.split("=") for line in lines)


def orders(said: Said) -> list[Order]:
    token = re.match(r"::stop-commands::(\S+)", said.out)
    shown = said.out.partition(f"\n::{token[1]}::\n")[2] if token else said.out
    found = []
    for kind, given, message in ORDER.findall(shown):
        properties = (unescaped(each).split("=", 1) for each in given.split(","))
        found.append(Order(kind, dict(properties), unescaped(message)))
    return found


@pytest.fixture
def job(cli: Cli, tiny_copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    cli("build", "--course", tiny_copy)
    checkout = tmp_path / "checkout"
    elsewhere = f"https://school.example/grader.whl#sha256={'0' * 64}"  # to write none
    assert cli("handout", checkout, "--course", tiny_copy, "--grader", elsewhere).code == 0
    subprocess.run(["git", "init", "-q", checkout], check=True)
    files = tmp_path / "runner"
    files.mkdir()
    for name, value in {
        "GITHUB_ACTIONS": "true",
        "GITHUB_WORKSPACE": str(checkout),
        "GITHUB_STEP_SUMMARY": str(files / "summary.md"),
        "GITHUB_OUTPUT": str(files / "outputs.txt"),
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(checkout)
    return Job(cli, checkout, files)


@pytest.fixture
def wrong(tiny_solution: str) -> str:
    return tiny_solution.replace(*WRONG)


def line_with(text: str, path: Path) -> str:
    """The number of the first line of a file that holds a text."""
    lines = path.read_text().splitlines()
    return str(next(number for number, line in enumerate(lines, 1) if text in line))


# --- remarks --------------------------------------------------------------------------------------


def test_a_remark_without_a_line_stands_at_the_definition(job: Job, wrong: str) -> None:
    file = job.checkout / "exercises" / "scale.py"
    file.write_text(f"# mine\n\n{wrong}")
    said = job("exercises")
    (order,) = orders(said)
    assert said.code == 1
    assert order.place == ("exercises/scale.py", line_with("def scale", file))
    assert order.properties["title"] == "Scale: 0 of 8 points"


def test_a_remark_on_an_error_stands_at_the_line_that_raised(job: Job, wrong: str) -> None:
    file = job.checkout / "exercises" / "scale.py"
    file.write_text(wrong.replace("return x + factor", "return x[99]"))
    (order,) = orders(job("exercises"))
    assert order.place == ("exercises/scale.py", line_with("x[99]", file))


def test_a_remark_names_the_path_in_the_checkout_of_a_renamed_folder(
    job: Job, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    week = job.checkout / "week1"
    week.mkdir()
    (week / "scale.py").write_text(wrong)
    wanted = ("week1/scale.py", line_with("def scale", week / "scale.py"))
    places = [orders(job(target))[0].place for target in ("week1", week, "week1/scale.py")]
    monkeypatch.chdir(week)
    places += [orders(job("scale.py", "--course", job.checkout))[0].place]
    assert places == [wanted] * 4


def test_without_a_repository_a_path_is_that_in_the_workspace(
    job: Job, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(job.checkout / ".git")
    (job.checkout / "exercises" / "scale.py").write_text(wrong)
    monkeypatch.chdir(job.checkout / "exercises")
    (order,) = orders(job("scale.py", "--course", job.checkout))
    assert order.place[0] == "exercises/scale.py"


@pytest.mark.parametrize("failing", ["return x + factor", "return x[99]"])
def test_a_remark_on_a_notebook_stands_in_its_file(job: Job, wrong: str, failing: str) -> None:
    (job.checkout / "exercises" / "scale.py").unlink()
    file = job.checkout / "week 1" / "scale.ipynb"
    file.parent.mkdir()
    cells = ["# mine", wrong.replace("return x + factor", failing)]
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbformat.write(made, file)
    (order,) = orders(job("week 1"))
    meant = failing if failing == "return x[99]" else "def scale"
    assert order.place == ("week 1/scale.ipynb", line_with(meant, file))


def test_a_remark_on_a_missing_file_names_no_file(job: Job) -> None:
    (job.checkout / "exercises" / "other.py").write_text("")
    (job.checkout / "exercises" / "scale.py").rename(job.checkout / "exercises" / "elacs.py")
    said = job("exercises")
    (order,) = orders(said)
    assert (said.code, order.kind, order.place) == (2, "error", (None, None))


@pytest.mark.slow
def test_a_named_mistake_is_remarked_at_the_stage_that_goes_wrong(cli: Cli) -> None:
    file = ROOT / "examples" / "class" / "s009" / "causal_attention.py"
    (order,) = orders(cli("check", file, "--course", ROOT, "--format", "github"))
    assert order.message.endswith("The scores are not divided by the square root of d_out.")
    place = "examples/class/s009/causal_attention.py"
    assert order.place == (place, line_with("scores = torch.matmul", file))


# --- what was not begun, and what could not be graded ---------------------------------------------


def test_an_untouched_template_is_neutral_where_the_course_says_so(job: Job) -> None:
    said = job("exercises", "--allow-untouched")
    assert said.code == 0
    assert [(order.kind, order.place) for order in orders(said)] == [("notice", (None, None))]
    assert "not started" in job.summary
    assert "NotImplementedError" not in job.summary
    assert len(job.summary.splitlines()) < 24
    assert job.outputs["state"] == "not started"
    assert job("exercises").code == 1


def test_work_that_was_begun_is_not_neutral(job: Job, wrong: str) -> None:
    (job.checkout / "exercises" / "scale.py").write_text(wrong)
    assert job("exercises", "--allow-untouched").code == 1


def refused_fork(job: Job, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    return ["--bundle", "course.bundle"]


def refused_key(job: Job, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    sealed_course(job, monkeypatch, job.checkout.parent / "tiny")
    monkeypatch.setenv(KEY_VARIABLE, new_key())
    return ["--bundle", "course.bundle"]


def refused_file(job: Job, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    monkeypatch.setenv(KEY_VARIABLE, new_key())
    return ["--bundle", "nope"]


def refused_suite(job: Job, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    (job.checkout / "exercises" / "course.json").write_text("{")
    return []


def refused_course(job: Job, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    other = job.checkout.parent / "other"
    shutil.copytree(job.checkout.parent / "tiny", other)
    (other / "reference" / "scale").rename(other / "reference" / "stretch")
    for file in filter(Path.is_file, (other / "reference").rglob("*")):
        text = file.read_text().replace("scale", "stretch").replace("Scale", "Stretch")
        file.write_text(text.replace("A tiny course", "Another course"))
    sealed_course(job, monkeypatch, other)
    return ["--bundle", "course.bundle"]


def sealed_course(job: Job, monkeypatch: pytest.MonkeyPatch, course: Path) -> None:
    """Put the bundle of a course into the checkout, and its key into the environment."""
    monkeypatch.setenv(KEY_VARIABLE, key := new_key())
    assert job.cli("bundle", "--out", "course.bundle", "--course", course).code == 0
    monkeypatch.setenv(KEY_VARIABLE, key)


@pytest.mark.parametrize(
    ("refused", "says", "never"),
    [
        (refused_fork, "A pull request from a fork gets none", "--new-key"),
        (refused_key, "the bundle does not open", "grader bundle"),
        (refused_file, "try: --bundle FILE", "--course"),
        (refused_suite, "course.json", "--new-key"),
        (refused_course, "these files are of “A tiny course”", "is not an exercise"),
    ],
)
def test_a_refused_request_is_an_error_with_a_summary(
    refused: Callable[[Job, pytest.MonkeyPatch], list[object]],
    says: str,
    never: str,
    job: Job,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = job("exercises", *refused(job, monkeypatch))
    assert said.code == 2
    (order,) = orders(said)
    assert (order.kind, order.place) == ("error", (None, None))
    assert says in order.message
    assert never not in order.message
    assert job.summary.startswith("**Nothing was graded:**")
    assert len(order.message.splitlines()) == 2
    assert job.outputs == {}


# --- other formats --------------------------------------------------------------------------------


def test_outputs_say_what_a_workflow_can_ask(job: Job, wrong: str, tiny_solution: str) -> None:
    found = []
    for text in (wrong, tiny_solution):
        (job.checkout / "exercises" / "scale.py").write_text(text)
        job("exercises")
        found.append(job.outputs)
    assert found == [
        {"points": "0", "max_points": "8", "passed": "false", "state": "to fix"},
        {"points": "8", "max_points": "8", "passed": "true", "state": "passed"},
    ]


def test_junit_has_the_time_and_the_line_of_each_case(job: Job, wrong: str) -> None:
    file = job.checkout / "exercises" / "scale.py"
    file.write_text(wrong.replace("return x + factor", "return x[99]"))
    job("exercises")
    (suite,) = ET.parse(job.files / "junit.xml").getroot()
    cases = suite.findall("testcase")
    assert {case.get("file") for case in cases} == {"exercises/scale.py"}
    lines = {case.get("line") for case in cases if case.find("failure") is not None}
    assert lines == {line_with("x[99]", file)}
    seconds = [float(case.get("time", "nan")) for case in cases]
    assert sum(seconds) == pytest.approx(float(suite.get("time", "nan")), abs=0.01)
    assert sum(seconds) > 0


def test_code_quality_is_what_gitlab_reads(job: Job, wrong: str) -> None:
    file = job.checkout / "exercises" / "scale.py"
    found = []
    for text in (wrong, f"# moved\n{wrong}"):
        file.write_text(text)
        job("exercises")
        (remark,) = json.loads((job.files / "quality.json").read_text())
        assert remark.keys() == (
            {"description", "check_name", "fingerprint", "severity", "location"}
        )
        assert remark["severity"] in ("info", "minor", "major", "critical", "blocker")
        line = int(line_with("def scale", file))
        assert remark["location"] == {"path": "exercises/scale.py", "lines": {"begin": line}}
        found.append(remark["fingerprint"])
    assert found[0] == found[1]  # GitLab shows it as the same remark
