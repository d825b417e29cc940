"""What is broken, hostile or damaged costs nobody but its own student."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fuzzing import campaign
from fuzzing_more import fuzzers, sound_value, survives_row

pytestmark = pytest.mark.in_turn

FUZZERS = fuzzers()
FEW = {"rows": 40, "answers": 500, "uploads": 10, "wire": 100}
MANY = {"rows": 5_000, "answers": 5_000, "wire": 5_000, "trees": 4_700}
MANY |= {"uploads": 300, "confined_trees": 300}  # which take processes
CASES = list(FEW.items())
SLOW = [pytest.param(what, count, marks=pytest.mark.slow) for what, count in MANY.items()]


@pytest.mark.slow
@pytest.mark.parametrize(("what", "cases"), [*CASES, *SLOW])
def test_nothing_but_errors_of_the_graders_own_comes_out(
    what: str, cases: int, tmp_path: Path
) -> None:
    did = campaign(FUZZERS[what], cases, tmp_path)
    assert did.failures == {}
    assert did.accepted < did.cases


def test_a_stored_result_that_names_no_exercise_costs_nobody_else(tmp_path: Path) -> None:
    other = sound_value("results", "result").replace(b'"scale"', b'"scal"')
    case = json.dumps(["results", "result", "right"]).encode() + b"\n" + other
    assert not survives_row(tmp_path, case)
