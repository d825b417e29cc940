"""Any roster and any gradebook is read, or refused with a sentence."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest
from fuzzing import FUZZERS, campaign

pytestmark = pytest.mark.in_turn

MIB = 1 << 20
TABLES = ("rosters", "canvas", "moodle")
FEW, MANY = 150, 5_000


@pytest.mark.parametrize("what", TABLES)
@pytest.mark.parametrize("cases", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
def test_a_damaged_table_is_read_or_refused(what: str, cases: int, tmp_path: Path) -> None:
    did = campaign(FUZZERS[what], cases, tmp_path)
    assert did.failures == {}
    assert 0 < did.accepted < did.cases


@pytest.mark.slow
@pytest.mark.parametrize("what", TABLES)
def test_a_table_takes_memory_in_proportion_to_its_size(what: str, tmp_path: Path) -> None:
    tracemalloc.start()
    try:
        campaign(FUZZERS[what], 300, tmp_path, seed=3)
        assert tracemalloc.get_traced_memory()[1] < 64 * MIB
    finally:
        tracemalloc.stop()
