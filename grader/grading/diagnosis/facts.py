"""Facts about wrong answers that hold whatever the mistake is."""

from __future__ import annotations

from typing import Any


def facts_of(*_: Any) -> tuple[str, ...]:
    return ()
