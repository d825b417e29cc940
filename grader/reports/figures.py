"""Points and times in readable form."""

from __future__ import annotations

from datetime import datetime


def amount(value: float) -> str:
    """Return points with at most two decimals."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def change(value: float) -> str:
    """Return added or subtracted points with a sign: `+2`, `−1.5` or `0`."""
    sign = "+" if value > 0 else "−" if value < 0 else ""
    return f"{sign}{amount(abs(value))}"


def moment(time: str) -> str:
    """Return an ISO time as `8 Nov 2026, 22:03`; another text stays as it is."""
    try:
        when = datetime.fromisoformat(time)
    except ValueError:
        return time
    return f"{when.day} {when:%b %Y, %H:%M}"
