"""Broken rows, hostile answers of readers and damaged uploads cost nobody but their own student."""

from __future__ import annotations

from pathlib import Path

import pytest
from fuzzing import campaign
from fuzzing_more import fuzzers

FUZZERS = fuzzers()
FEW = {"rows": 40, "answers": 500, "uploads": 10, "wire": 100}
MANY = {"rows": 5_000, "answers": 5_000, "uploads": 300, "wire": 5_000}  # an upload is a process
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
