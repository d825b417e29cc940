"""A second course, on sampling and losses, takes every command that the first one takes.

The engine knows no exercise: `examples/sampling/` was written with `grader new` and the pages for
authors alone. Students' and teachers' commands run on a copy of it.
"""

from __future__ import annotations

import csv
import json
import re
import shutil
from pathlib import Path
from types import ModuleType

import pytest
import torch
import torch.nn.functional as F
from classroom import hand_in, marks, report_of
from commandline import Cli, Grade
from comparing import assert_close
from reference_cases import loaded
from torch import Tensor

from grader.course.course import Course, load_course
from grader.course.known_mistakes import load_mistakes
from grader.course.stubs import make_stub
from grader.grading.grader import Grader
from grader.grading.session import with_grader
from grader.sandbox.host.zygote import Zygote
from grader.submissions.submission import Submission
from grader.testing import Rng

pytestmark = pytest.mark.in_turn

ROOT = Path(__file__).parent.parent
SAMPLING = ROOT / "examples" / "sampling"
NAMES = ("log_loss", "perplexity", "top_k", "nucleus")
POINTS = 40
MIN_FAULTS = 6
WRONG = {  # exercise: what the solution says, what is put there, what is said of it
    "log_loss": ("max(len(losses), 1)", "max(targets.numel(), 1)", "so ignored ones lower"),
    "perplexity": ("torch.exp(loss)", "2**loss", "2 is raised to the power of the loss"),
    "top_k": ("rank >= k", "rank > k", "One logit too many is kept"),
    "nucleus": ("cumsum(dim=-1)", "cumsum(dim=0)", "added up over the rows"),
}


@pytest.fixture(scope="module")
def original() -> Course:
    """The course as it is in the repository."""
    return load_course(SAMPLING)


@pytest.fixture(scope="module")
def texts(original: Course) -> dict[str, str]:
    """The reference solution of every exercise."""
    return {name: original[name].read("solution.py") for name in original.names}


@pytest.fixture
def sampling(tmp_path: Path) -> Path:
    """A copy of the course that a test may change."""
    ignored = shutil.ignore_patterns("__pycache__", ".grader")
    return shutil.copytree(SAMPLING, tmp_path / "sampling", ignore=ignored)


@pytest.fixture
def homework(cli: Cli, sampling: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a student, who has only what `grader init` writes, and is in it."""
    folder = tmp_path / "mine"
    assert cli("init", folder, "--course", sampling).code == 0
    monkeypatch.chdir(folder)
    return folder / "exercises"


def broken(texts: dict[str, str], name: str) -> str:
    """The solution of an exercise with the mistake of `WRONG` in it."""
    old, new, _ = WRONG[name]
    assert texts[name].count(old) == 1, old
    return texts[name].replace(old, new)


def plain(text: str) -> str:
    """A text without its line breaks."""
    return " ".join(text.split())


# --- the engine and the content -------------------------------------------------------------------


def test_the_engine_names_no_exercise_of_either_course(original: Course, course: Course) -> None:
    """No file of the engine says the name of an exercise outside the examples of its docstrings."""
    assert original.names == NAMES
    for path in sorted((ROOT / "grader").rglob("*.py")):
        text = path.read_text("utf-8")
        assert [name for name in NAMES if re.search(rf"\b{name}\b", text)] == [], path
        code = re.sub(r'"""[\s\S]*?"""|#.*', "", text)
        assert [name for name in course.names if name in code] == [], path


@pytest.mark.slow
def test_the_content_is_proven(cli: Cli, sampling: Path, original: Course) -> None:
    """`grader validate` finds nothing to fix."""
    said = cli("validate", "--course", sampling)
    assert (said.code, "✗" in said.out) == (0, False), said.out
    for exercise in original.exercises:
        assert len(load_mistakes(exercise)) >= MIN_FAULTS


def test_the_two_courses_share_no_exercise(original: Course, course: Course) -> None:
    """Whatever works for both works for any."""
    assert set(original.names) & set(course.names) == set()


def test_the_generated_files_are_current(cli: Cli) -> None:
    """`grader build --check` finds every file of `exercises/` to be today's."""
    said = cli("build", "--check", "--course", SAMPLING)
    assert said.code == 0, said.out


@pytest.mark.parametrize("file", ["statement.md", "solution.py", "test_public.py", "mistakes.toml"])
def test_a_change_of_the_sources_makes_generated_files_stale(
    cli: Cli, sampling: Path, file: str
) -> None:
    """A statement, a signature, a public test or a mistake cannot change without `grader build`."""
    path = sampling / "reference" / "nucleus" / file
    text = path.read_text("utf-8")
    text = text.replace("p: float", "p: float = 0.9").replace('says = "', 'says = "So: ')
    path.write_text(text + "\n# More.\n", "utf-8")
    said = cli("build", "--check", "--course", sampling)
    assert (said.code, "stale: " in said.out) == (1, True)


def test_a_hint_in_other_words_changes_one_line_of_one_file(cli: Cli, sampling: Path) -> None:
    def texts() -> dict[Path, list[bytes]]:
        files = (path for path in (sampling / "exercises").rglob("*") if path.is_file())
        return {path: path.read_bytes().splitlines() for path in files}

    before, mistakes = texts(), sampling / "reference" / "top_k" / "mistakes.toml"
    hint = "one of the k largest?"
    assert mistakes.read_text().count(hint) == 1
    mistakes.write_text(mistakes.read_text().replace(hint, "among the k largest?"))
    assert cli("build", "--course", sampling).code == 0
    after = texts()
    (path,) = (path for path in after if after[path] != before.get(path))
    assert path == sampling / "exercises" / "records" / "top_k.json"
    assert [*map(len, (before[path], after[path]))] == [len(before[path])] * 2
    assert sum(old != new for old, new in zip(before[path], after[path])) == 1


def test_every_tensor_line_of_a_solution_ends_in_its_shape(original: Course) -> None:
    """Each assignment and each result of a solution says its shape."""
    for exercise in original.exercises:
        parts = exercise.read("solution.py").split("# --- solution")[1:]
        lines = "\n".join(part.split("# --- end")[0] for part in parts).splitlines()
        tensors = [line for line in lines if re.match(r"\s+(return |[\w, ]+ = )", line)]
        bare = [line for line in tensors if not re.search(r"  # .*\(.*\)", line)]
        assert [line.strip() for line in bare if "logits.shape" not in line] == [], exercise.name


# --- the references -------------------------------------------------------------------------------


def module_of(texts: dict[str, str], name: str) -> ModuleType:
    """The reference module of an exercise."""
    return loaded(texts, name)


@pytest.mark.parametrize("seed", range(4))
def test_log_loss_is_torchs(seed: int, texts: dict[str, str], original: Course) -> None:
    """The reference and the stand-in give the loss of torch, and its gradients."""
    rng = Rng(seed)
    logits, targets = rng.randn(4, 6, 5), rng.randint(0, 5, 4, 6)
    targets[:, 4:] = 2
    stand_in = original["log_loss"].stand_in
    assert stand_in is not None
    for text in (texts["log_loss"], stand_in):
        function = loaded({"log_loss": text}, "log_loss").log_loss
        ours, theirs = (logits.clone().requires_grad_() for _ in range(2))
        loss = function(ours, targets, 2)
        right = F.cross_entropy(theirs.flatten(0, 1), targets.flatten(), ignore_index=2)
        loss.backward()
        right.backward()
        assert_close(loss, right, "the loss")
        assert_close(ours.grad, theirs.grad, "the gradient")
        assert function(logits, torch.full_like(targets, 2), 2) == 0


@pytest.mark.parametrize("seed", range(4))
def test_perplexity_is_that_of_torchs_loss(seed: int, texts: dict[str, str]) -> None:
    """The reference is the exponential of torch's loss, one token on."""
    rng = Rng(seed)
    logits, tokens = rng.randn(3, 5, 7), rng.randint(0, 7, 3, 5)
    tokens[1, 3:] = -100
    right = F.cross_entropy(logits[:, :-1].mT, tokens[:, 1:]).exp()
    assert_close(module_of(texts, "perplexity").perplexity(logits, tokens), right, "the result")


@pytest.mark.parametrize("seed", range(4))
def test_top_k_keeps_what_torchs_topk_returns(seed: int, texts: dict[str, str]) -> None:
    """Without equal logits, the kept ones are those of `torch.topk`."""
    logits = Rng(seed).randn(3, 4, 9)
    for k in range(1, 10):
        output = module_of(texts, "top_k").top_k(logits, k)
        values, places = logits.topk(k)
        right = torch.full_like(logits, -torch.inf).scatter(-1, places, values)
        assert torch.equal(output, right)


def nucleus_of_row(row: Tensor, p: float) -> Tensor:
    """The nucleus of one row, token by token."""
    probabilities = torch.softmax(row, dim=-1).tolist()
    order = sorted(range(len(row)), key=lambda token: -probabilities[token])
    kept, total = torch.full_like(row, -torch.inf), 0.0
    for token in order:
        if total >= p:
            break
        kept[token] = row[token]
        total += probabilities[token]
    return kept


@pytest.mark.parametrize("seed", range(4))
def test_nucleus_is_that_of_a_loop(seed: int, texts: dict[str, str]) -> None:
    """The reference keeps what a loop over the sorted tokens keeps."""
    logits = Rng(seed).randn(6, 9)
    for p in (0.05, 0.4, 0.75, 0.99):
        output = module_of(texts, "nucleus").nucleus(logits, p)
        assert torch.equal(output, torch.stack([nucleus_of_row(row, p) for row in logits]))


# --- the commands of students ---------------------------------------------------------------------


@pytest.mark.slow
def test_right_solutions_earn_all_points(
    cli: Cli, homework: Path, sampling: Path, texts: dict[str, str]
) -> None:
    """By the public suites in a students' copy, and by the hidden ones."""
    for name in NAMES:
        (homework / f"{name}.py").write_text(texts[name], "utf-8")
    said = cli("check", homework, "--format", "json")
    assert (said.code, json.loads(said.out)["points"]) == (0, POINTS)
    said = cli("check", homework, "--course", sampling, "--format", "json")
    assert (said.code, json.loads(said.out)["points"]) == (0, POINTS)
    assert cli("status").out.count("passed") == len(NAMES)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_program_is_named_with_its_mistake(
    cli: Cli, homework: Path, sampling: Path, texts: dict[str, str], name: str
) -> None:
    """In a students' copy and in the teacher's; then the hint on the mistake comes first."""
    (homework / f"{name}.py").write_text(broken(texts, name), "utf-8")
    if name == "perplexity":  # which builds on it
        (homework / "log_loss.py").write_text(texts["log_loss"], "utf-8")
    says = WRONG[name][2]
    said = cli("check", name)
    assert (said.code, says in plain(said.out)) == (1, True), said.out
    said = cli("check", homework / f"{name}.py", "--course", sampling)
    assert (said.code, says in plain(said.out)) == (1, True), said.out
    assert "on your mistake" in cli("hint", name).out


@pytest.mark.slow
def test_every_known_mistake_is_found_in_a_students_copy(
    zygote: Zygote, original: Course, texts: dict[str, str], tmp_path: Path
) -> None:
    """No program with a mistake of the catalogue passes the suite of a students' copy."""
    shutil.copytree(SAMPLING / "exercises", tmp_path / "exercises")

    def passed(grader: Grader) -> list[str]:
        found = []
        for exercise in original.exercises:
            for fault in load_mistakes(exercise):
                files = texts | {exercise.name: fault.apply(texts[exercise.name])}
                report = grader.grade(Submission("s001", files), [exercise.name], 7).report
                found += [f"{exercise.name}: {fault.name}"] * report.passed
        return found

    assert with_grader(load_course(tmp_path), NAMES, zygote, passed) == []


def test_what_an_exercise_builds_on_comes_first_in_a_students_copy(
    cli: Cli, homework: Path, texts: dict[str, str]
) -> None:
    """A copy has no stand-ins: nothing is named that an earlier exercise may have caused."""
    (homework / "perplexity.py").write_text(texts["perplexity"], "utf-8")
    said = cli("check", "perplexity")
    assert (said.code, "not started" in said.out) == (1, False)
    comes_first = "log_loss comes first: this exercise builds on it, and it is not"
    assert f"{comes_first} written yet" in plain(said.out)
    (homework / "log_loss.py").write_text(broken(texts, "log_loss"), "utf-8")
    said = cli("check", "perplexity")
    assert (said.code, "→" in said.out) == (1, False)
    assert f"{comes_first} right yet: grader check log_loss" in plain(said.out)


def test_a_file_is_checked_with_the_files_beside_it_that_it_needs(
    cli: Cli, homework: Path, texts: dict[str, str]
) -> None:
    for name in ("perplexity", "log_loss"):
        (homework / f"{name}.py").write_text(texts[name], "utf-8")
    said = cli("check", homework / "perplexity.py")
    assert (said.code, "log_loss" in said.out) == (0, False), said.out


def test_a_stub_has_hints_a_place_and_a_way_back(cli: Cli, homework: Path) -> None:
    """`grader hint`, `grader status` and `grader reset`, before anything is checked."""
    assert cli("hint", "top_k").out.startswith("hint 1 of 3")
    said = cli("status").out
    assert [line.split()[0] for line in said.splitlines()[:4]] == list(NAMES)
    assert "next: grader check log_loss" in said
    stub = (homework / "top_k.py").read_text("utf-8")
    (homework / "top_k.py").write_text("mine = 1\n", "utf-8")
    assert "kept as" in cli("reset", "top_k").out
    assert (homework / "top_k.py").read_text("utf-8") == stub


@pytest.mark.slow
def test_a_mistake_in_the_loss_costs_nothing_in_perplexity(
    grade: Grade, original: Course, texts: dict[str, str]
) -> None:
    """Perplexity is graded on a stand-in; only the check on the student's own parts sees it."""
    files = texts | {"log_loss": broken(texts, "log_loss")}
    (result,) = grade(original, files, "perplexity").exercises
    assert result.points == result.max_points


@pytest.mark.slow
def test_a_mistake_that_is_not_known_is_told_by_the_exercises_own_aspect(
    grade: Grade, original: Course, texts: dict[str, str]
) -> None:
    """A fact speaks of rows with equal logits, which no aspect of the engine's own is about."""
    wrong = texts["top_k"].replace(
        "rank = order.argsort(dim=-1)",
        "rank = order.argsort(dim=-1)\n"
        "    first = (logits[..., :1] == logits[..., 1:]).any(dim=-1, keepdim=True)\n"
        "    rank = torch.where(first, rank.roll(1, -1), rank)",
    )
    (result,) = grade(original, texts | {"top_k": wrong}, "top_k").exercises
    assert result.diagnosis is not None
    assert result.diagnosis.faults == ()
    assert "rows with equal logits" in result.diagnosis.facts[0]


# --- the commands of teachers ---------------------------------------------------------------------


def test_a_handout_holds_the_exercises_and_no_answer(
    cli: Cli, sampling: Path, tmp_path: Path, original: Course
) -> None:
    """The repository for students has stubs and public tests, and no line of a solution."""
    folder = tmp_path / "handed"
    assert cli("handout", folder, "--course", sampling, "--ci", "practice").code == 0
    assert (folder / "README.md").read_text("utf-8").startswith("# Sampling and losses in PyTorch")
    written = "\n".join(
        path.read_text("utf-8") for path in folder.rglob("*") if path.suffix in (".py", ".md")
    )
    for exercise in original.exercises:
        stub = folder / "exercises" / f"{exercise.name}.py"
        assert stub.read_text("utf-8") == make_stub(exercise)
        solution = exercise.read("solution.py").split("# --- solution")[1].split("# --- end")[0]
        code = (line.partition("  # ")[0].strip() for line in solution.splitlines())
        assert [line for line in code if len(line) > 20 and line in written] == []


def test_init_takes_a_folder_of_the_courses_name(
    cli: Cli, sampling: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a folder, it is not that of the course that comes with the grader."""
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path / "home")
    said = cli("init", "--course", sampling)
    assert (said.code, "grader check log_loss" in said.out) == (0, True)
    assert Path("sampling", "exercises", "nucleus.py").is_file()


@pytest.mark.slow
def test_a_class_is_graded_and_its_marks_are_exported(
    cli: Cli, sampling: Path, tmp_path: Path, original: Course, texts: dict[str, str]
) -> None:
    """Three students: all right, a mistake in each exercise, and untouched stubs."""
    handed_in = {
        "s001": texts,
        "s002": {name: broken(texts, name) for name in NAMES},
        "s003": {name: make_stub(original[name]) for name in NAMES},
    }
    files = {
        f"{who}/{n}.py": text for who, all_of in handed_in.items() for n, text in all_of.items()
    }
    folder, out = hand_in(tmp_path / "class", files), tmp_path / "out"
    said = cli("batch", folder, "--out", out, "--course", sampling, "--seed", 5)
    assert (said.code, "3 submissions graded" in said.out) == (1, True), said.out + said.err
    points = {who: int(mark) for who, mark in marks(out).items()}
    assert (points["s001"], points["s003"]) == (POINTS, 0)
    assert 0 < points["s002"] < POINTS
    for exercise in report_of(out, "s002")["exercises"]:
        assert WRONG[exercise["name"]][2] in exercise["diagnosis"]["says"]
    said = cli("export", "csv", "--in", out, "-o", tmp_path / "m.csv", "--course", sampling)
    assert said.code == 0, said.err
    with (tmp_path / "m.csv").open(newline="", encoding="utf-8-sig") as file:
        lines = {row["submission"]: row for row in csv.DictReader(file)}
    assert {who: int(line["points"]) for who, line in lines.items()} == points
    assert {*NAMES} <= {*lines["s001"]}
