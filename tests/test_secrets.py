"""Arguments, a suite's own tensors and secret inputs are out of a student's reach."""

from __future__ import annotations

import hashlib
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from classroom import hand_in, report_of
from commandline import Cli, Grade
from msgspec import structs

from grader.course.course import Course
from grader.grading.session import with_grader
from grader.processes.child import ChildProcess
from grader.report import Report
from grader.sandbox.host.zygote import Zygote
from grader.submissions.submission import Submission

if TYPE_CHECKING:
    from grader.grading.grader import Grader


@pytest.mark.slow
def test_writing_into_any_argument_fails_the_check(course: Course, grade: Grade) -> None:
    text = course["masked_softmax"].read("solution.py")
    name = "def masked_softmax("
    assert name in text
    writes = text.replace(name, "def honest(") + (
        "\n\ndef masked_softmax(X, valid_lens):\n"
        "    weights = honest(X, valid_lens)\n"
        "    if valid_lens is not None: valid_lens.fill_(1)\n"
        "    return weights\n"
    )
    (result,) = grade(course, {"masked_softmax": writes}, "masked_softmax").exercises
    outcomes = {test.name: test for test in result.tests}
    failed = outcomes["test_views_and_arguments"]
    says = "Which scores or lengths are others after a call with a length for each query."
    assert says in [case.sentence for case in failed.wrong]


@pytest.fixture
def suite(tiny_copy: Path) -> Path:
    return tiny_copy / "reference" / "scale" / "test_hidden.py"


@pytest.mark.slow
def test_a_tensor_at_module_level_is_the_same_for_every_student(
    cli: Cli, suite: Path, tiny_copy: Path, tiny_solution: str, tmp_path: Path
) -> None:
    suite.write_text(
        suite.read_text()
        + '''

import torch
from grader.testing import sharing
X, MORE = torch.ones(3), {"list": [1]}

@pytest.mark.points(0)
def test_shared(student):
    """A tensor of the suite."""
    assert_close(X, torch.ones(3), "the suite's own tensor")
    assert_close(MORE, {"list": [1]}, "the suite's own dict")
    MORE["list"].append(2)
    with sharing(student, X):
        student.scale(X, 1.0)
'''
    )
    cheat = tiny_solution.replace("    if factor < 0:", "    x.zero_()\n    if factor < 0:")
    texts = {f"s{n:03}/scale.py": cheat if n == 2 else tiny_solution for n in range(1, 6)}
    out = tmp_path / "out"
    cli("batch", hand_in(tmp_path / "class", texts), "--out", out, "--course", tiny_copy)
    for name in ("s001", "s003", "s004", "s005"):
        tests = report_of(out, name)["exercises"][0]["tests"]
        assert {t["message"] for t in tests if t["outcome"] != "passed"} == set()


@pytest.mark.slow
def test_validate_refuses_tensors_at_module_level(cli: Cli, suite: Path, tiny_copy: Path) -> None:
    suite.write_text(suite.read_text() + "\nimport torch\nCASES = [(1, torch.ones(2))]\n")
    said = cli("validate", "--course", tiny_copy)
    assert said.code == 1
    assert "test_hidden.py: keeps a tensor or a module at module level (CASES)" in said.out


@pytest.mark.slow
def test_no_shown_test_repeats_what_a_secret_one_sent(
    cli: Cli, suite: Path, tiny_copy: Path, tiny_solution: str, tmp_path: Path
) -> None:
    text = suite.read_text()
    secret = '''@pytest.mark.visible("never")
@pytest.mark.points(0)
def test_secret(student):
    """A secret."""
    import torch
    student.scale(torch.full((2,), 47114711.0), 2.0)


'''
    first = "@pytest.mark.points(2)\ndef test_twice"
    suite.write_text(text.replace(first, secret + first))
    spy = tiny_solution.replace(
        "    if factor < 0:",
        "    SEEN.append(x.flatten().tolist())\n    print(SEEN)\n"
        "    if len(x.shape) == 2: raise LookupError(SEEN)\n    if factor < 0:",
    ).replace("def scale(", "SEEN = []\n\n\ndef scale(")
    out = tmp_path / "out"
    texts = {"s001/scale.py": tiny_solution, "s002/scale.py": spy, "s003/scale.py": tiny_solution}
    cli("batch", hand_in(tmp_path / "class", texts), "--out", out, "--course", tiny_copy)
    pages = [path.read_text() for path in (out / "reports").glob("s002*")]
    assert pages
    assert not [page for page in pages if "47114711" in page]
    names = [test["name"] for test in report_of(out, "s001")["exercises"][0]["tests"]]
    assert names.index("hidden") == 1


@pytest.mark.slow
def test_a_comparison_of_two_answers_accepts_only_tensors(course: Course, grade: Grade) -> None:
    text = course["dictionary_lookup"].read("solution.py")
    for answer in ("('x', 'x')", "(1.0, 1.0)", "(None, None)", "torch.full((2, 3, 6), torch.nan)"):
        words = text + f"\n\ndef attention(Q, K, V, temp=1.0): return {answer}\n"
        (result,) = grade(course, {"dictionary_lookup": words}, "dictionary_lookup").exercises
        outcomes = {test.name: test.outcome for test in result.tests}
        for name in ("test_temp", "test_leading_axes_and_views"):  # they accept the code's own
            assert outcomes[name] != "passed", (name, answer)


# Looks at every text and byte string that the process holds; names the lines whose hashes it knows.
SEARCH = """
import gc
import hashlib
import inspect
import linecache
import sys

import masked_softmax as stand_in

KNOWN = dict(pair.split("=") for pair in "{known}".split())
LENGTHS = range(30, 110)


def reached():
    seen = {{id(thing): thing for thing in gc.get_objects()}}
    for thing in (linecache.cache, vars(stand_in), sys.modules, sys.meta_path):
        seen[id(thing)] = thing
    frame = sys._getframe()
    while frame is not None:
        seen[id(frame)] = frame
        frame = frame.f_back
    new = list(seen.values())
    while new:
        there = {{id(thing): thing for thing in gc.get_referents(*new)}}
        new = [thing for number, thing in there.items() if number not in seen]
        seen.update((id(thing), thing) for thing in new)
    return seen.values()


def texts():
    for thing in reached():
        if isinstance(thing, (bytes, bytearray)):
            yield thing.decode("latin-1")
        elif type(thing) is str:
            yield thing
    yield from linecache.getlines(stand_in.__file__)
    try:
        yield inspect.getsource(stand_in.masked_softmax)
    except (OSError, TypeError):
        pass


looked, found = 0, set()  # lines that are known
for text in texts():
    looked += 1
    for line in text.splitlines():
        line = line.strip().strip('"')
        if len(line) in LENGTHS:
            digest = hashlib.sha256(line.encode("utf-8", "replace")).hexdigest()
            found.add(KNOWN.get(digest))
raise LookupError(f"looked at {{looked}} texts; found {{sorted(filter(None, found))}}")
"""


OWN = "looked, found = 0, set()  # lines that are known"


@pytest.mark.slow
def test_no_line_of_a_stand_in_or_a_reference_is_in_the_process_of_the_student(
    course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ChildProcess, "popen", subprocess.Popen)  # not a fork of a test's process
    exercise = structs.replace(
        course["additive_attention"], call_seconds=60.0, exercise_seconds=60.0
    )
    stand_in = course["masked_softmax"].stand_in
    assert stand_in is not None
    others = {
        "stand-in": stand_in,
        "reference": exercise.read("solution.py"),
        "suite": exercise.read("test_hidden.py"),
    }
    known = {
        f"{hashlib.sha256(line.encode()).hexdigest()}={name}:{number}"
        for name, text in {**others, "own": SEARCH}.items()
        for number, line in enumerate((each.strip().strip('"') for each in text.splitlines()), 1)
        if len(line) > 30 and (name == "own") == (line == OWN)
    }
    assert len(known) > 50
    patient = replace(
        course,
        exercises=tuple(
            exercise if each.name == exercise.name else each for each in course.exercises
        ),
    )
    submission = Submission("s001", {exercise.name: SEARCH.format(known=" ".join(known))})

    def body(grader: Grader) -> Report:
        return grader.grade(submission, [exercise.name], 7).report

    with Zygote() as zygote:
        (result,) = with_grader(patient, [exercise.name], zygote, body).exercises
    own = SEARCH.splitlines().index(OWN) + 1
    messages = {test.message for test in result.tests if "LookupError" in test.message}
    assert messages, [test.message for test in result.tests]
    for message in messages:
        assert re.search(rf"looked at \d{{5,}} texts; found \['own:{own}'\]", message), message
