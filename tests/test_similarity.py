"""Submissions that are similar, and above all submissions that are not."""

from __future__ import annotations

import random
import subprocess
import sys
import textwrap
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.classroom import similarity
from grader.classroom.review import NeedsReview
from grader.classroom.similarity import (
    FEWEST,
    GRAM,
    WINDOW,
    Similarity,
    fingerprints,
    shared_lines,
    tokens,
)
from grader.reports.summary import Pair, SimilarGroup

STUB = '''
"""Weigh the values by how well the keys fit."""
import torch

def attention(Q, K, V, temp=1.0):
    raise NotImplementedError("fill in attention")

def lookup(entries, key, temp=0.01):
    raise NotImplementedError("fill in lookup")
'''
SIGNS = ("+", "-", "*", "@", "/", "%", "<<", "&")


def program(seed: int, lines: int = 24) -> str:
    """A solution in the frame of the stub, different from all others: its lines are random."""
    rng = random.Random(seed)

    def value(depth: int = 3) -> str:
        if not depth or rng.random() < 0.2:
            return rng.choice(("x", "y.shape[0]", "2", "[x, y]", "f(x)", "not x", "x[:, y]"))
        return f"({value(depth - 1)} {rng.choice(SIGNS)} {value(depth - 1)})"

    body = "\n".join(f"name_{n} = {value()}" for n in range(lines))
    return f"import torch\n\ndef attention(Q, K, V, temp=1.0):\n{textwrap.indent(body, '    ')}\n"


def renamed(text: str) -> str:
    """The same solution, disguised: other names, numbers, comments and blank lines."""
    for old, new in (("name_", "result"), ("x", "left"), ("y", "right"), ("2", "7")):
        text = text.replace(old, new)
    return "# all my own work\n" + text.replace("\n", "  # really\n\n").replace("  #", "   #")


def pairs_of(*texts: str, common: str = STUB) -> list[Pair]:
    found = Similarity([common])
    for at, text in enumerate(texts):
        found.add(f"s{at:03}", {"attention": text})
    return found.pairs()


def test_what_cannot_be_compared_costs_only_its_student(monkeypatch: pytest.MonkeyPatch) -> None:
    real = similarity._ComparedFile

    def planted(student: int, digest: int, prints: Any) -> Any:
        return real(student, digest, None if student == 1 else prints)

    monkeypatch.setattr(similarity, "_ComparedFile", planted)
    review = NeedsReview()
    found = Similarity([STUB], review.errors_of)
    for name in ("s000", "s001", "s002"):
        found.add(name, {"attention": program(1)})
    assert [pair.students for pair in found.pairs()] == [("s000", "s002")]
    assert list(review.reasons) == ["s001"]


def test_a_student_whose_files_cannot_be_read_hands_none_to_the_next() -> None:
    review = NeedsReview()
    found = Similarity([STUB], review.errors_of)
    for name in ("s000", "s001", "s002"):
        with review.errors_of(name):
            texts: Any = {"attention": program(1)} | ({"lookup": 7} if name == "s001" else {})
            found.add(name, texts)
    assert {pair.students for pair in found.pairs()} == {
        ("s000", "s001"),
        ("s000", "s002"),
        ("s001", "s002"),
    }
    assert list(review.reasons) == ["s001"]


def others(count: int) -> list[str]:
    return [program(seed) for seed in range(1000, 1000 + count)]


def test_independent_solutions_are_not_similar() -> None:
    assert pairs_of(*others(30)) == []


def test_new_names_numbers_and_comments_hide_nothing() -> None:
    (pair,) = pairs_of(program(1), *others(20), renamed(program(1)))
    assert pair.students == ("s000", "s021")
    assert pair.exercises == ("attention",)
    assert pair.share > 0.95
    assert pair.identical == ()


def test_identical_files_are_named() -> None:
    (pair,) = pairs_of(program(1), *others(5), program(1).replace("\n", "\r\n"))
    assert (pair.students, pair.share) == (("s000", "s006"), 1.0)
    assert pair.identical == ("attention",)


def test_a_copied_part_shows_in_the_share() -> None:
    own = program(2).splitlines()
    copied = program(1).splitlines()
    mixed = "\n".join(copied[:22] + own[22:])
    (pair,) = pairs_of(program(1), *others(20), mixed)
    assert 0.6 <= pair.share < 0.95


def test_code_from_the_stub_is_left_out() -> None:
    given_code = program(3)
    both = [given_code + "\n" + program(seed, 4) for seed in (4, 5)]
    assert pairs_of(*both, *others(5), common=given_code) == []
    assert pairs_of(*[STUB] * 5) == []
    assert pairs_of(*[given_code] * 3, common=given_code) == []


def test_code_that_many_students_wrote_is_left_out() -> None:
    usual = program(6)
    converged = [usual + f"\nz = {at}" for at in range(11)]
    assert pairs_of(*converged, *others(9)) == []
    assert len(pairs_of(*converged[:3], *others(17))) == 3


def test_where_solutions_converge_only_those_that_converge_further_are_reported() -> None:
    """Everybody shares two thirds with somebody, so two thirds means nothing in this class."""
    halves = []
    for seed in range(10):
        shared = program(seed).splitlines()
        halves += [
            "\n".join(shared[:22] + program(n).splitlines()[22:]) for n in (seed + 50, seed + 80)
        ]
    assert pairs_of(*halves) == []
    (pair,) = pairs_of(program(7), *halves, program(7) + "\nz = 0")
    assert pair.students == ("s000", "s021")


def test_a_short_file_is_not_compared() -> None:
    assert pairs_of(*["def attention(Q, K, V):\n    return (Q @ K.mT).softmax(-1) @ V"] * 3) == []


def test_many_students_with_the_same_file_are_each_named_once() -> None:
    found = pairs_of(*[program(1)] * 40)
    assert len(found) == 39
    assert {student for pair in found for student in pair.students} == {
        f"s{at:03}" for at in range(40)
    }
    assert all(pair.identical for pair in found)


def groups_of(*texts: str) -> list[SimilarGroup]:
    found = Similarity([STUB])
    for at, text in enumerate(texts):
        found.add(f"s{at:03}", {"attention": text})
    return found.groups()


@pytest.mark.slow
def test_identical_files_are_one_group_however_many() -> None:
    first, second = groups_of(*[program(1)] * 540, program(2), program(2))
    assert (len(first.students), first.identical, first.shares) == (540, ("attention",), (1.0, 1.0))
    assert second.students == ("s540", "s541")
    assert len(first.shown) <= 3


def test_a_group_holds_whoever_is_similar_to_one_of_it() -> None:
    own = program(2).splitlines()
    mixed = "\n".join(program(1).splitlines()[:22] + own[22:])
    (group,) = groups_of(program(1), *others(20), mixed, renamed(program(1)))
    assert group.students == ("s000", "s021", "s022")
    assert group.shares[0] < group.shares[1]
    assert group.shown[0] == ("s000", "s022")


def test_the_lines_that_two_texts_share_are_known() -> None:
    own, copied = program(2).splitlines(), program(1).splitlines()
    mixed = "\n".join(own[:6] + copied[6:14] + own[14:])
    first, second = shared_lines(program(1), "# a comment\n\n" + renamed(mixed), [STUB])
    assert set(range(8, 14)) <= first
    assert len(first) < 20  # of 27: random lines share a little, too
    assert {line.lstrip() for at, line in enumerate(mixed.splitlines(), 1) if at in first} >= {
        line.lstrip() for line in copied[7:13]
    }
    assert set(range(18, 30)) <= second  # twice as many lines, after three


def test_no_line_of_the_stub_is_shared() -> None:
    assert shared_lines(STUB, STUB, [STUB]) == (set(), set())


def test_pairs_with_more_exercises_come_first() -> None:
    found = Similarity([STUB])
    for seed, text in enumerate(others(8)):
        found.add(f"s{seed:03}", {"one": text, "two": program(seed + 30)})
    found.add("s008", {"one": program(1)})
    found.add("s009", {"one": program(1)})
    found.add("s010", {"one": renamed(program(2)), "two": program(3)})
    found.add("s011", {"one": program(2), "two": program(3)})
    first, second = found.pairs()
    assert (first.students, first.exercises) == (("s010", "s011"), ("one", "two"))
    assert first.identical == ("two",)
    assert second.students == ("s008", "s009")


def test_a_match_as_long_as_the_guarantee_is_found() -> None:
    """Winnowing guarantees to find every match of GRAM + WINDOW - 1 tokens."""
    shared = " ".join(random.Random(5).choices("+-*/@%", k=GRAM + WINDOW - 1))
    first, second = (" ".join(random.Random(n).choices("([{}]),:", k=60)) for n in (1, 2))
    assert fingerprints(f"{first} {shared} {first}") & fingerprints(f"{second} {shared} {second}")


@pytest.mark.slow
def test_fingerprints_are_the_same_in_every_process() -> None:
    code = (
        "from grader.classroom.similarity import fingerprints;"
        "print(sum(fingerprints('a+b*(c-d)/e' * 9)))"
    )
    done = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert done[0] == done[1] != "0\n"


def test_tokens_leave_out_names_comments_and_docstrings() -> None:
    text = 'class A:\n  """Says what."""\n  def f(self, x=1.5e3): # why\n    return x ** f"{x}"\n'
    assert " ".join(tokens(text)) == "class n : def n ( n , n = 0 ) : return n ** ''"


@pytest.mark.parametrize(
    "broken",
    [
        "def f(:\n  '''never closed",
        "\x00\x01" * 99,
        "(" * 5000,
        "  x\n y\n\tz",
        "\ud800 = 'é",
        '"""',
    ],
)
def test_broken_python_is_compared_as_well(broken: str) -> None:
    found = pairs_of(broken + program(1), broken + program(1) + " # ", *others(3))
    assert isinstance(found, list)


@settings(max_examples=50, deadline=None)
@given(st.text(st.characters(), max_size=400))
def test_no_text_raises(text: str) -> None:
    assert len(fingerprints(text)) <= len(text) + 1


@pytest.mark.slow
def test_a_class_that_shares_code_is_not_compared_pair_by_pair() -> None:
    """The index holds only what few students share, so a class of 600 takes little time."""
    usual = program(1)
    found = Similarity([STUB])
    for at in range(600):
        found.add(f"s{at:03}", {"attention": usual + program(at % 300 + 10, 6)})
    assert len(fingerprints(usual)) > FEWEST
    assert len(found.pairs()) == 300
