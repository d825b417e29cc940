"""`grader check` and the student's other commands, as typed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from classroom import hand_in
from commandline import Cli, Grade

from grader.__main__ import run
from grader.commands.memory import LastCheck, Memory
from grader.course.course import load_course
from grader.report import HINT_BREAK, ExerciseResult
from grader.sandbox.host.zygote import Zygote

HERE = Path(__file__).parent


@pytest.fixture
def work(tiny_copy: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The students' folder of a freshly built tiny course, which is the current folder."""
    assert cli("build", "--course", tiny_copy).code == 0
    monkeypatch.chdir(tiny_copy)
    return tiny_copy / "exercises"


def solve(work: Path, *edits: tuple[str, str]) -> None:
    text = (work.parent / "reference" / "scale" / "solution.py").read_text()
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    (work / "scale.py").write_text(text)


# --- verdicts and exit codes ----------------------------------------------------------------------


@pytest.mark.slow
def test_the_reference_earns_all_points_and_exit_0(cli: Cli, work: Path) -> None:
    said = cli("check", "reference")
    assert said.code == 0
    assert re.search(r"scale\s+8 / 8 .*passed", said.out)


def test_the_stub_earns_nothing_and_exit_1(cli: Cli, work: Path) -> None:
    said = cli("check")
    assert said.code == 1
    assert re.search(r"scale\s+0 / 8 .*not started", said.out)


@pytest.mark.slow
def test_a_mistake_shows_sentence_difference_and_both_values(cli: Cli, work: Path) -> None:
    solve(work, ("return x * factor", "return x * min(factor, 2)"))
    said = cli("check", "scale", "--seed", "5")
    assert said.code == 1
    assert "scale: The factor 3 triples." in said.out
    assert "(6 of 6 values differ, by up to" in " ".join(said.out.split())
    assert "    expected\n" in said.out
    assert "    yours\n" in said.out
    assert "grader hint scale" in said.out
    assert "seed 5" in said.out


@pytest.mark.slow
def test_nothing_of_the_grader_or_a_hidden_test_is_shown(cli: Cli, work: Path) -> None:
    hidden = (work.parent / "reference" / "scale" / "test_hidden.py").read_text()
    secrets = [
        line.strip() for line in hidden.splitlines() if "(student" in line or "twins" in line
    ]
    assert secrets
    broken = (("return x * factor", "return undefined"), ("return x * self.weight", "return None"))
    solve(work, *broken)
    for form in ("text", "json", "markdown", "html"):
        said = cli("check", "--format", form)
        for shown in (said.out, said.err):
            assert "test_hidden" not in shown
            assert "grader/" not in shown.replace("attention-grader/report", "")
            assert "site-packages" not in shown
            assert not [secret for secret in secrets if secret in shown]


def test_a_check_that_needs_a_failed_one_is_skipped_and_says_so(cli: Cli, work: Path) -> None:
    solve(work, ("return x * factor", "return torch.multiply(x, factor)"))
    report = json.loads(cli("check", "--format", "json").out)
    gate, *others = report["exercises"][0]["tests"]
    assert gate["message"] == "torch.multiply does the work that this exercise asks you to write"
    assert gate["where"]["source"].startswith("return torch.multiply(x, factor)")
    assert {test["outcome"] for test in others} == {"skipped"}
    skipped = 'skipped until "The product is your own." passes'
    assert {test["message"] for test in others} == {skipped}
    assert report["points"] == 0


CHAIN = """
import pytest
from grader.testing import expect


@pytest.mark.needs("test_second")
@pytest.mark.points(2)
def test_third(student):
    \"\"\"The third.\"\"\"
    expect(student.scale(1, 3) == 3, "no 3")


@pytest.mark.needs("test_first")
@pytest.mark.points(3)
def test_second(student):
    \"\"\"The second.\"\"\"
    expect(student.scale(1, 2) == 2, "no 2")


@pytest.mark.points(3)
def test_first(student):
    \"\"\"The first.\"\"\"
    expect(student.scale(1, 1) == 1, "no 1")
"""


@pytest.mark.parametrize(
    ("wrong", "outcomes"),
    [
        (1, {"third": "skipped", "second": "skipped", "first": "failed"}),
        (2, {"third": "skipped", "second": "failed", "first": "passed"}),
        (3, {"third": "failed", "second": "passed", "first": "passed"}),
    ],
)
def test_what_needs_a_skipped_check_is_skipped_too_in_whatever_order_they_stand(
    grade: Grade, tiny_copy: Path, wrong: int, outcomes: dict[str, str]
) -> None:
    (tiny_copy / "reference/scale/test_hidden.py").write_text(CHAIN)
    code = f"def scale(x, factor): return 0 if factor == {wrong} else factor\n"
    (result,) = grade(load_course(tiny_copy), {"scale": code}).exercises
    assert {test.name: test.outcome for test in result.tests} == {
        f"test_{name}": outcome for name, outcome in outcomes.items()
    }
    says = {test.message for test in result.tests if test.outcome == "skipped"}
    root = {1: "first", 2: "second"}.get(wrong)
    assert says == ({f'skipped until "test_{root}" passes'} if root else set())


LOST = """
class Scale:
    def __init__(self, *_): scale()

def scale(*_): raise RuntimeError("lost")
"""


def test_not_every_check_fails_if_one_that_is_worth_nothing_passes(
    grade_tiny: Callable[[str], ExerciseResult], grade: Grade, tiny_copy: Path
) -> None:
    result = grade_tiny(LOST)
    assert [test.outcome for test in result.tests] == ["passed", *["failed"] * 4]
    assert result.advice == ""
    alone = re.sub("@pytest.mark.needs.*", "", CHAIN)
    (tiny_copy / "reference/scale/test_hidden.py").write_text(alone)
    (result,) = grade(load_course(tiny_copy), {"scale": "def scale(: pass\n"}).exercises
    assert result.advice == "your file cannot be loaded, so every check fails in the same way"


@pytest.mark.slow
def test_a_seed_repeats_a_run_bit_for_bit_and_a_fresh_one_differs(cli: Cli, work: Path) -> None:
    solve(work, ("return x * factor", "return x * min(factor, 2)"))
    first, again = (cli("check", "--format", "json", "--seed", "9").out for _ in range(2))
    assert first == again
    fresh, other = (json.loads(cli("check", "--format", "json").out) for _ in range(2))
    assert fresh["seed"] != other["seed"]
    assert (
        fresh["exercises"][0]["tests"][2]["actual"] != other["exercises"][0]["tests"][2]["actual"]
    )


@pytest.mark.slow
def test_only_what_is_named_is_graded(cli: Cli, work: Path) -> None:
    solve(work)
    by_name = json.loads(cli("check", "scale", "--format", "json").out)
    by_file = json.loads(cli("check", "exercises/scale.py", "--format", "json").out)
    by_folder = json.loads(cli("check", "exercises", "--format", "json").out)
    assert by_name["points"] == by_file["points"] == by_folder["points"] == 8


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        ("import no_such_module\n", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("def broken(:\n", "invalid syntax"),
        ("from grader.testing import nothing\n", "ImportError: cannot import name 'nothing'"),
    ],
)
def test_a_broken_suite_is_the_courses_fault_and_names_file_and_line(
    broken: str, says: str, cli: Cli, work: Path
) -> None:
    suite = work.parent / "reference" / "scale" / "test_hidden.py"
    text = suite.read_text()
    suite.write_text(text + broken)
    said = cli("check", "reference")
    assert said.code == 2
    line = text.count("\n") + 1
    assert f"scale/test_hidden.py does not collect: line {line}: {says}" in said.err
    assert "Traceback" not in said.err


def test_a_test_that_breaks_by_itself_is_the_courses_fault(cli: Cli, work: Path) -> None:
    suite = work.parent / "reference" / "scale" / "test_hidden.py"
    text = suite.read_text()
    suite.write_text(text.replace("    x = rng.randn(2, 3)\n", "    x = rng.gone(2, 3)\n"))
    said = cli("check", "reference", "--format", "json")
    assert said.code == 3
    tests = json.loads(said.out)["exercises"][0]["tests"]
    assert "error" in {test["outcome"] for test in tests}
    assert "the course's own test broke: AttributeError" in said.out


@pytest.mark.parametrize("solution", ["return x * factor", "return x * factor + 1"])
def test_a_test_that_breaks_at_a_right_answer_is_the_courses_fault(
    cli: Cli, work: Path, solution: str
) -> None:
    suite = work.parent / "reference" / "scale" / "test_hidden.py"
    broken = """

@pytest.mark.points(1)
def test_broken(student, reference, rng):
    \"\"\"Half of it.\"\"\"
    half = student.scale(rng.randn(2, 3), 0.5)
    assert_close(half, refrence.scale(half, 1.0), "half")
"""
    suite.write_text(suite.read_text() + broken)
    solve(work, ("return x * factor", solution))
    said = cli("check", "--format", "json")
    assert said.code == 3
    (test,) = [
        t for t in json.loads(said.out)["exercises"][0]["tests"] if t["name"] == "test_broken"
    ]
    assert test["outcome"] == "error"
    assert "the course's own test broke: the reference fails it, too" in test["message"]
    assert "name 'refrence' is not defined" in test["message"]


# --- the json ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_json_has_the_documented_keys(cli: Cli, work: Path) -> None:
    solve(work, ("return x * factor", "raise KeyError(factor)"))
    report = json.loads(cli("check", "--format", "json", "--seed", "3").out)
    assert report["schema"] == "attention-grader/report/v1"
    assert {"submission", "seed", "points", "max_points", "versions", "hashes"} <= report.keys()
    assert report["confinement"][0] == "separate process"
    exercise = report["exercises"][0]
    assert {"name", "points", "max_points", "advice", "tests", "diagnosis"} <= exercise.keys()
    test = next(test for test in exercise["tests"] if test["outcome"] == "failed")
    documented = "name sentence outcome points max_points message expected actual where"
    assert set(documented.split()) <= test.keys()
    assert test["where"]["file"].endswith("scale.py")
    assert test["where"]["source"].strip().startswith("raise KeyError(factor)")


@pytest.mark.slow
def test_every_key_of_the_json_is_documented(cli: Cli, work: Path) -> None:
    page = (HERE.parent / "docs" / "report-format.md").read_text()
    solve(work, ("return x * factor", "return x"))

    def keys(value: object, path: str = "") -> set[str]:
        if isinstance(value, dict) and path not in ("versions", "hashes"):
            inner = (keys(v, k) for k, v in value.items())
            return set(value).union(*inner)
        if isinstance(value, list):
            return set().union(*(keys(item) for item in value))
        return set()

    report = json.loads(cli("check", "--format", "json").out)
    assert {key for key in keys(report) if f"`{key}`" not in page} == set()


# --- the students' copy ---------------------------------------------------------------------------


@pytest.mark.slow
def test_without_reference_the_public_tests_grade_and_it_says_so(cli: Cli, work: Path) -> None:
    solve(work)
    (work.parent / "reference").rename(work.parent.parent / "kept")
    said = cli("check")
    assert said.code == 0
    assert "points of the public checks that came with this copy" in said.out
    assert "scale passed when it was last checked" in cli("hint", "scale").out
    assert cli("hint", "scale", "--all").out.startswith("hint 1 of 3")
    assert cli("reset", "scale").code == 0
    assert "raise NotImplementedError" in (work / "scale.py").read_text()


def test_hints_come_one_by_one_and_are_remembered(cli: Cli, work: Path) -> None:
    assert cli("hint", "scale").out.count("hint ") == 1
    assert cli("hint", "scale").out.count("hint ") == 2
    last = cli("hint", "scale").out
    assert "hint 3 of 3" in last
    assert "x times factor." in last
    assert "That was the last one." in last


@pytest.mark.slow
def test_hints_on_two_mistakes_are_two_hints(cli: Cli, work: Path) -> None:
    solve(work)
    path, text = work / "scale.py", (work / "scale.py").read_text()
    hint = HINT_BREAK.join(["Which factor?", "Which sign?"])
    last = LastCheck(3, passed=False, hint=hint)
    Memory(work.parent).remember({path: (text, last)})
    said = cli("hint", "scale", "--all").out
    assert "hint 1 of 5, on your mistake\n  Which factor?\n" in said
    assert "hint 2 of 5, on your mistake\n  Which sign?\n" in said
    assert "hint 3 of 5\n" in said


@pytest.mark.slow
def test_status_follows_a_student_through_an_exercise(cli: Cli, work: Path) -> None:
    assert "not started" in cli("status").out
    solve(work, ("return x * factor", "return x * min(factor, 2)"))
    assert "changed since it was last checked" in cli("status").out
    cli("check")
    assert re.search(r"6 / 8 +checked, not passed", cli("status").out)
    assert "next: grader check scale" in cli("status").out
    solve(work)
    cli("check")
    said = cli("status").out
    assert re.search(r"8 / 8 +passed", said)
    assert "All done." in said


@pytest.mark.slow
def test_a_stub_that_an_editor_saved_again_is_not_started(cli: Cli, work: Path, pair: Path) -> None:
    shift = pair / "reference" / "shift" / "exercise.toml"
    shift.write_text(f'requires = ["scale"]\n{shift.read_text()}')
    stub = (work / "scale.py").read_text()
    hand_in(work / "mine", {"scale.py": "", "shift.py": "def shift(x, by): return x\n"})
    (work / "mine/scale.py").write_bytes(stub.replace("\n", "\r\n").encode())
    said = cli("check", work / "mine", "shift", "--course", pair)
    assert "scale comes first: this exercise builds on it" in " ".join(said.out.split())
    (work / "scale.py").write_bytes(f"# Jane\r\n{stub}".encode())
    assert "not started" in cli("status").out


def test_reset_keeps_a_copy(cli: Cli, work: Path) -> None:
    solve(work)
    mine = (work / "scale.py").read_text()
    said = cli("reset", "scale")
    kept = Path(re.search(r"kept as (\S+)", said.out).group(1))
    assert kept.read_text() == mine
    assert "raise NotImplementedError" in (work / "scale.py").read_text()


# --- on its own ----------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [[], ["scale"], ["exercises"], ["exercises/scale.py"]])
def test_exercises_that_are_not_started_need_no_process_with_torch(
    words: list[str], cli: Cli, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*arguments: object) -> None:
        raise AssertionError("something was to be graded")

    monkeypatch.setattr("grader.commands.work.Zygote", Zygote)
    monkeypatch.setattr("grader.sandbox.host.zygote.Zygote.start_worker", fails)
    if not words or words == ["scale"]:  # other places are read before anything is known of them
        monkeypatch.setattr("grader.sandbox.host.zygote.Zygote.start", fails)
    said = cli("check", *words)
    assert (said.code, said.err) == (1, "")
    assert "scale    0 / 8   ░░░░░░░░░░  not started" in said.out
    assert "next: scale" in said.out
    assert "not started" in cli("status").out


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments", [["--help"], ["check", "--help"], ["check", "nowhere/x.py"], ["check"]]
)
def test_help_and_errors_do_not_wait_for_torch(arguments: list[str], work: Path) -> None:
    code = (
        "import sys; from grader.__main__ import run; run(sys.argv[1:]); "
        "sys.exit('torch' in sys.modules or 'pytest' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], check=False, capture_output=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_the_installed_command_grades_without_a_terminal(work: Path) -> None:
    solve(work)
    done = subprocess.run(
        [sys.executable, "-m", "grader", "check"], check=False, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) < 80


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("grader check sc", "plain,scale"),
        ("grader hint s", "plain,scale"),
        ("grader reset ", "plain,scale"),
        ("grader check exercises/", "file,exercises/"),
        ("grader check --wat", "plain,--watch"),
        ("grader val", "plain,validate"),
        ("grader validate sc", "plain,scale"),
        ("grader batch class --without sc", "plain,scale"),
        ("grader batch class --only sc", "plain,scale"),
        ("grader waive sc", "plain,scale"),
        ("grader adjust s001 sc", "plain,scale"),
        ("grader explain s001 sc", "plain,scale"),
        ("grader init --course-list fu", "plain,full"),
    ],
)
def test_the_shell_completes_names_of_exercises(
    words: str,
    offered: str,
    work: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    capsys.readouterr()
    monkeypatch.setenv("_GRADER_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split(" ")) - 1))
    with pytest.raises(SystemExit):
        run([])
    assert capsys.readouterr().out.splitlines() == [offered]


def test_a_copy_in_the_current_folder_is_named_beside_the_usual_file(
    work: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    solve(work)
    (work.parent / "scale.py").write_text((work / "scale.py").read_text())
    said = cli("check")
    assert "note: scale.py in this folder is checked, not exercises/scale.py" in said.out
    monkeypatch.chdir(work)
    assert "in this folder" not in cli("check").out
