"""Which part of the largest sets of tests is run: `make test` runs a tenth, `make test-all` all.

`make test` sets `TURN` to the commit, so that another commit runs another part, and all of them are
run in time; whoever names tests to pytest runs all of those.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from typing import TypeVar

import pytest

Item = TypeVar("Item")
SHARE = 10  # one in so many is run
TURN = int(os.environ.get("TURN") or "0", 16)
IS_WHOLE = not os.environ.get("TURN")


def in_turn(items: Sequence[Item], share: int = SHARE) -> list[Item]:
    """Return one in `share` of the items, or all where everything is run."""
    return [*items] if IS_WHOLE else one_in(share, items)


def one_in(share: int, items: Sequence[Item]) -> list[Item]:
    """Return one in `share` of the items, also where everything else is run."""
    return [*items[TURN % min(share, max(len(items), 1)) :: share]]


def left_for_another_turn(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Return the slow tests that another commit runs, with the mark `in_turn`, or only the night.

    Those of one function take turns among themselves; `in_turn("file")` has a file's go together.
    """
    numbers: Counter[str] = Counter()
    left: list[pytest.Item] = []
    for item in [] if IS_WHOLE else items:
        if item.get_closest_marker("night") is not None:
            left.append(item)
            continue
        mark = item.get_closest_marker("in_turn")
        if mark is None or item.get_closest_marker("slow") is None:
            continue
        if mark.args == ("file",):
            is_in_turn = (TURN + sum(item.path.name.encode())) % SHARE == 0
        else:
            function = item.nodeid.partition("[")[0]
            share = mark.kwargs.get("share", SHARE)
            is_in_turn = (TURN + sum(function.encode()) + numbers[function]) % share == 0
            numbers[function] += 1
        if not is_in_turn:
            left.append(item)
    return left
