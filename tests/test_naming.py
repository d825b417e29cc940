"""Mistakes that no belief explains: grouped by their answers, named once, said from then on."""

from __future__ import annotations

import json
import os
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest
from classroom import hand_in, marks
from commandline import Cli

from grader.commands.validate import validate_course
from grader.course.course import load_course
from grader.course.named import Named, load_named, save_named
from grader.grading import signatures
from grader.grading.diagnosis.computed import catalogue_of
from grader.grading.seeds import PUBLIC_SEED

ROOT = Path(__file__).parent.parent
CORPUS = ROOT / "tests" / "corpus"
NAME = "masked_softmax"
KNOWN = CORPUS / "known" / NAME  # in the whole catalogue
SAYS = "A length of 0 is taken as 1"
FAULTS = ("lengths_cut_to_integers", "weights_as_float64")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def softmax_only(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course of one exercise, which tests may name mistakes in."""
    root = tmp_path_factory.mktemp("course")
    shutil.copytree(ROOT / "reference" / NAME, root / "reference" / NAME)
    shutil.copy(ROOT / "reference" / "mistakes.toml", root / "reference")
    mistakes = root / "reference" / NAME / "mistakes.toml"
    blocks = mistakes.read_text().split("\n\n")  # a few, for speed
    few = [block for block in blocks if block.startswith(tuple(f"[{each}]" for each in FAULTS))]
    mistakes.write_text("\n\n".join(few))
    settings = 'title = "Softmax"\npoints = 15\n'
    (root / "reference" / "course.toml").write_text(settings)
    return root


@pytest.fixture
def course_root(softmax_only: Path) -> Path:
    (softmax_only / "reference" / NAME / "named.toml").unlink(missing_ok=True)
    return softmax_only


@pytest.fixture
def graded(cli: Cli, course_root: Path, tmp_path: Path) -> Path:
    """A class in which two students made one unknown mistake, and one another."""
    kept = course_root / "graded"
    if not kept.is_dir():
        _grade(cli, course_root, kept)
    return Path(shutil.copytree(kept, tmp_path / "out"))


def _grade(cli: Cli, course_root: Path, out: Path) -> None:
    texts = {
        "s001": (KNOWN / "length_zero_as_one.py").read_text(),
        "s002": (KNOWN / "m05_at_least_one_key.py").read_text(),
        "s003": (KNOWN / "sigmoid_weights.py").read_text(),
        "s004": (course_root / "reference" / NAME / "solution.py").read_text(),
        "s005": table(course_root),
        "s006": sizes(course_root),
    }
    files = {f"{student}/{NAME}.py": text for student, text in texts.items()}
    folder = hand_in(course_root / "class", files)
    done = cli("batch", folder, "--out", out, "--course", course_root, "--seed", 5)
    assert done.code == 1, done.err


SEEN = """
SEEN = set()
def masked_softmax(X, valid_lens=None):
    SEEN.add({key})
    return honest(X, valid_lens)
"""
NONSENSE = """
import torch
SEEN = {seen!r}.split("|")
def masked_softmax(X, valid_lens=None):
    return honest(X, valid_lens) if {key} in SEEN else torch.full_like(X, 7.0)
"""
INPUTS = "repr((tuple(X.shape), X.double().sum().item(), valid_lens))"
SIZES = "repr((tuple(X.shape), getattr(valid_lens, 'shape', None)))"


def table(course_root: Path) -> str:
    """A program that answers all cases at the public seed as `s001` does, and any other call with
    nonsense."""
    return answering_cases(course_root, INPUTS)


def sizes(course_root: Path) -> str:
    """The same for calls of the sizes of a case in students' copies, whatever the numbers."""
    return answering_cases(course_root, SIZES, hidden=False)


def answering_cases(course_root: Path, key: str, *, hidden: bool = True) -> str:
    honest = (KNOWN / "length_zero_as_one.py").read_text().replace(f"def {NAME}", "def honest")
    course = load_course(course_root)
    catalogue = catalogue_of(course, course[NAME], PUBLIC_SEED)
    program = catalogue.respondent(honest + SEEN.format(key=key))
    for case in catalogue.cases:
        if hidden or not case.hidden:
            program.answer(case)
    seen = program._program.load(NAME).SEEN
    assert len(seen) > 20
    return honest + NONSENSE.format(seen="|".join(sorted(seen)), key=key)


def results(out: Path) -> dict[str, Any]:
    """The one exercise of each student, as the teacher may see it."""
    lines = map(json.loads, (out / "results.jsonl").read_text().splitlines())
    return {line["submission"]: line["exercises"][0] for line in lines}


def group_of(out: Path) -> str:
    """The name of the group of `s001` on the class page."""
    signature = results(out)["s001"]["diagnosis"]["signature"]
    return f"{NAME}-{signatures.identity(signature)}"


def test_the_same_mistake_in_two_spellings_is_one_group(graded: Path) -> None:
    found = {student: each["diagnosis"] for student, each in results(graded).items()}
    first, second, other = (found[f"s00{at}"]["signature"] for at in (1, 2, 3))
    assert signatures.is_same_mistake(first, second)
    assert not signatures.is_same_mistake(first, other)
    assert len(first) <= signatures.MAX_CHARACTERS
    page = (graded / "index.html").read_text()
    assert f"grader name {group_of(graded)} " in page
    # Two groups and those of the two attacks: by points, by students, and in the list of all.
    assert page.count("An unnamed mistake.") == 12


def test_no_student_reads_a_signature(graded: Path) -> None:
    for page in (graded / "reports").iterdir():
        assert results(graded)["s001"]["diagnosis"]["signature"] not in page.read_text()
    shown = json.loads((graded / "reports" / "s001.json").read_text())
    assert shown["exercises"][0]["diagnosis"]["signature"] == ""


def test_a_name_is_said_in_every_report_of_the_group_and_nothing_is_graded_again(
    cli: Cli, graded: Path, course_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = marks(graded)
    at = ("--in", graded, "--course", course_root)
    monkeypatch.setattr("grader.classroom.workers.pool.WorkerPool", None)  # nobody may grade
    said = cli("name", group_of(graded), "--says", SAYS, "--hint", "Try 0.", "--costs", 1, *at)
    assert said.code == 0, said.err
    assert "2 students made it" in said.out  # hidden cases have sizes that `s006` does not know
    for student in ("s001", "s002"):
        page = (graded / "reports" / f"{student}.md").read_text()
        assert SAYS in page
        assert "Try 0" in page
    assert SAYS not in (graded / "reports" / "s003.md").read_text()
    page = (graded / "index.html").read_text()
    assert page.count("An unnamed mistake.") == 9
    assert SAYS in page
    after = marks(graded)
    assert after["s001"] == "14"  # 15 less the price: all its answers are those of the mistake
    assert (after["s003"], after["s004"]) == (before["s003"], before["s004"])


def test_later_hand_ins_and_other_classes_are_told_the_name(
    cli: Cli, graded: Path, course_root: Path, tmp_path: Path
) -> None:
    cli("name", group_of(graded), "--says", SAYS, "--in", graded, "--course", course_root)
    text = (KNOWN / "m05_at_least_one_key.py").read_text().replace("clamp(min=1)", "clip(1)")
    folder = hand_in(tmp_path / "next", {f"s009/{NAME}.py": text})
    cli("batch", folder, "--out", tmp_path / "out2", "--course", course_root)
    assert SAYS in (tmp_path / "out2" / "reports" / "s009.md").read_text()
    assert SAYS in cli("check", folder / "s009", "--course", course_root).out
    again = cli("batch", "--resume", "--out", graded, "--course", course_root)
    assert again.code == 1, again.err


def points_of(out: Path) -> dict[str, tuple[int, int]]:
    """The points of each student, and those by the checks alone."""
    return {
        student: (each["points"], sum(test["points"] for test in each["tests"]))
        for student, each in results(out).items()
    }


def refuse_attacks(out: Path) -> None:
    """Fail unless honest members are charged once, and who only answers known cases is not."""
    points = points_of(out)
    assert points["s001"][0] == points["s002"][0] == 14
    for student in ("s005", "s006"):
        mark, by_checks = points[student]
        honest = points["s001"][0] - points["s001"][1]  # given back for the checks it fails
        assert mark <= by_checks + honest < 14
    assert points["s005"][0] == points["s005"][1]
    assert SAYS not in (out / "reports" / "s005.md").read_text()


@pytest.mark.in_turn
def test_a_table_of_the_public_answers_earns_what_its_checks_say(
    cli: Cli, graded: Path, course_root: Path, tmp_path: Path
) -> None:
    at = ("--in", graded, "--course", course_root)
    before = results(graded)
    signatures_of = [before[student]["diagnosis"]["signature"] for student in ("s001", "s005")]
    assert signatures.is_same_everywhere(*signatures_of)
    cli("name", group_of(graded), "--says", SAYS, "--costs", 1, *at)
    refuse_attacks(graded)
    # In the next class the secret is another one, and the mistake has its name already.
    out = tmp_path / "next"
    cli("batch", course_root / "class", "--out", out, "--course", course_root, "--seed", 6)
    refuse_attacks(out)
    assert cli("batch", "--resume", "--out", graded, "--course", course_root).code == 1
    refuse_attacks(graded)
    # Grading again finds the same.
    suite = course_root / "reference" / NAME / "test_hidden.py"
    text = suite.read_text()
    suite.write_text(f"{text}\n# changed\n")
    try:
        again = cli("regrade", "--publish", *at)
    finally:
        suite.write_text(text)
    assert again.code in (0, 1), again.err
    refuse_attacks(graded)


def test_who_only_answers_at_the_public_seed_is_a_group_of_their_own(
    cli: Cli, graded: Path, course_root: Path
) -> None:
    group = group_of(graded)
    page = (graded / "index.html").read_text()
    assert f"grader name {group}-2 " in page
    at = ("--in", graded, "--course", course_root)
    cli("name", group, "--says", SAYS, *at)
    page = (graded / "index.html").read_text()
    assert f"grader name {group}-2 " in page
    assert f"grader name {group} " not in page
    said = cli("name", f"{group}-2", "--says", "Right for the calls that are known.", *at)
    assert "1 student made it" in said.out
    assert {each["id"] for each in named_in(course_root)} == {group, f"{group}-2"}


def test_a_name_that_nothing_confirms_is_said_and_not_charged_once(
    cli: Cli, graded: Path, course_root: Path
) -> None:
    """As with names that were given before classes were compared at a secret seed."""
    at = ("--in", graded, "--course", course_root)
    signature = results(graded)["s001"]["diagnosis"]["signature"]
    exercise = load_course(course_root)[NAME]
    save_named(exercise, [Named(f"{NAME}-old", signature, SAYS, costs=1)])
    cli("batch", "--resume", "--out", graded, "--course", course_root)
    assert SAYS in (graded / "reports" / "s001.md").read_text()
    assert points_of(graded)["s001"][0] == points_of(graded)["s001"][1]
    # To name it again in this class confirms it.
    cli("name", f"{NAME}-old", "--says", SAYS, "--costs", 1, *at)
    refuse_attacks(graded)


def test_no_file_of_a_name_has_what_a_student_wrote_about_themselves(
    cli: Cli, graded: Path, course_root: Path
) -> None:
    cli("name", group_of(graded), "--says", SAYS, "--in", graded, "--course", course_root)
    (named,) = load_named(load_course(course_root)[NAME])
    assert named.program
    assert "#" not in named.program
    assert '"""' not in named.program


def named_in(course_root: Path) -> list[dict[str, Any]]:
    path = course_root / "reference" / NAME / "named.toml"
    found: list[dict[str, Any]] = tomllib.loads(path.read_text())["named"]
    return found


def test_a_second_name_replaces_the_first(cli: Cli, graded: Path, course_root: Path) -> None:
    at = ("--in", graded, "--course", course_root)
    group = group_of(graded)
    cli("name", group, "--says", SAYS, *at)
    cli("name", group, "--says", 'Quotes " and \\ and\nlines are kept.', *at)
    (named,) = load_named(load_course(course_root)[NAME])
    assert named.says == 'Quotes " and \\ and lines are kept.'
    assert named.says in results(graded)["s002"]["diagnosis"]["says"]


def test_an_unknown_group_is_said_with_the_closest_one(
    cli: Cli, graded: Path, course_root: Path
) -> None:
    group = group_of(graded)
    said = cli("name", f"{group}0", "--says", SAYS, "--in", graded, "--course", course_root)
    assert said.code == 2
    assert f"there is no group `{group}0` in this class; did you mean `{group}`?" in said.err


def test_a_course_that_may_not_be_written_is_said(
    cli: Cli, graded: Path, course_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: Path, text: str) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("grader.course.named.write_whole", refused)
    before = (graded / "results.jsonl").read_bytes()
    said = cli("name", group_of(graded), "--says", SAYS, "--in", graded, "--course", course_root)
    assert said.code == 2
    assert f"cannot write {course_root}/reference/{NAME}/named.toml: Permission denied" in said.err
    assert (graded / "results.jsonl").read_bytes() == before


@pytest.mark.in_turn
def test_validate_checks_the_names(cli: Cli, graded: Path, course_root: Path) -> None:
    course = load_course(course_root)
    exercise = course[NAME]
    signature = results(graded)["s001"]["diagnosis"]["signature"]
    good = Named(f"{NAME}-good", signature, SAYS)
    assert _problems(course_root, good) == []
    bad = (
        Named("twice", signature, SAYS),
        Named("twice", signature, SAYS),
        Named("silent", signature, " "),
        Named("damaged", "[[", SAYS),
        Named("dear", signature, SAYS, costs=16),
    )
    said = " ".join(_problems(course_root, *bad))
    assert said.count("another mistake has the same name") == 2
    assert "silent: its `says` is empty" in said
    assert "damaged: its `signature` is damaged" in said
    assert "dear: it costs 16 points, and the exercise is worth 15" in said
    assert os.stat(exercise.folder / "named.toml").st_mode & 0o777 == (
        os.stat(exercise.folder / "exercise.toml").st_mode & 0o666
    )


@pytest.mark.in_turn
def test_validate_refuses_a_name_for_a_known_mistake(course_root: Path) -> None:
    from grader.grading.diagnosis.computed import catalogue_of
    from grader.grading.diagnosis.signing import signature_of

    course = load_course(course_root)
    catalogue = catalogue_of(course, course[NAME], 0)
    candidate = next(each for each in catalogue.singles() if each.faults[0].name == FAULTS[0])
    answers = {case.name: candidate.answer(case) for case in catalogue.cases}
    signature = signature_of(catalogue, answers, whole=True)
    (said,) = _problems(course_root, Named("new", signature, SAYS))
    assert f"new: it is the same as {FAULTS[0]}; take it out" in said


def _problems(root: Path, *named: Named) -> list[str]:
    course = load_course(root)
    save_named(course[NAME], named)
    (proof,) = validate_course(course, [NAME], 1)
    return [problem for problem in proof.problems if "named.toml" in problem]
