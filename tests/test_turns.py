"""A tenth of the largest sets of tests is run at a time, and in time every test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import turns

ITEMS = [*range(23)]


def test(name: str, **marks: tuple[str, ...]) -> Any:
    """A test as it is collected, with the arguments of its marks."""
    found = {mark: SimpleNamespace(args=args, kwargs={}) for mark, args in marks.items()}
    place = Path(name.partition("::")[0])
    return SimpleNamespace(nodeid=name, path=place, get_closest_marker=found.get)


test.__test__ = False  # type: ignore[attr-defined]
MANY = [test(f"test_a.py::test_many[{n}]", slow=(), in_turn=()) for n in range(12)]
FILE = [test(f"test_b.py::test_{n}", slow=(), in_turn=("file",)) for n in range(3)]
FAST = [test("test_a.py::test_fast", in_turn=()), test("test_c.py::test_slow", slow=())]
NIGHT = [test("test_a.py::test_many[night]", slow=(), in_turn=(), night=())]
COLLECTED = [*MANY, *FILE, *FAST, *NIGHT]
OfTurn = Callable[[int | None], list[Any]]


@pytest.fixture
def of_turn(monkeypatch: pytest.MonkeyPatch) -> OfTurn:
    """What is run in a turn; in none, everything is."""

    def run(turn: int | None) -> list[Any]:
        monkeypatch.setattr(turns, "TURN", turn or 0)
        monkeypatch.setattr(turns, "IS_WHOLE", turn is None)
        left = turns.left_for_another_turn(COLLECTED)
        return [item for item in COLLECTED if item not in left]

    return run


def test_each_test_has_its_turn_and_none_has_it_often(of_turn: OfTurn) -> None:
    runs = [of_turn(turn) for turn in range(turns.SHARE)]
    for item in [*MANY, *FILE]:
        assert sum(item in run for run in runs) == 1, item.nodeid
    assert max(len(run) for run in runs) <= len(FAST) + 2 + len(FILE)


def test_a_file_has_its_turn_as_a_whole(of_turn: OfTurn) -> None:
    (run,) = (run for run in map(of_turn, range(turns.SHARE)) if FILE[0] in run)
    assert [item for item in run if item.path.name == "test_b.py"] == FILE


def test_what_is_fast_or_has_no_mark_is_always_run_and_the_night_never(of_turn: OfTurn) -> None:
    for turn in range(turns.SHARE):
        run = of_turn(turn)
        assert [item for item in FAST if item not in run] == []
        assert NIGHT[0] not in run


def test_without_a_turn_everything_is_run(of_turn: OfTurn) -> None:
    assert of_turn(None) == COLLECTED
    assert turns.in_turn(ITEMS) == ITEMS


def test_each_of_many_is_tried_in_time_and_some_always(of_turn: OfTurn) -> None:
    tried: set[int] = set()
    for turn in range(turns.SHARE):
        of_turn(turn)
        tried |= {*turns.in_turn(ITEMS)}
        assert len(turns.in_turn(ITEMS)) in (2, 3)
        assert len(turns.one_in(40, ITEMS)) == 1
        assert turns.one_in(40, []) == []
    assert tried == {*ITEMS}
