"""Keeping a measured table in a page of docs/, between the marks that name it."""

from __future__ import annotations

from pathlib import Path


def part(page: Path, name: str) -> str:
    """What stands between `<!-- begin: NAME -->` and `<!-- end: NAME -->`."""
    return _split(page, name)[1]


def keep(page: Path, name: str, text: str) -> None:
    """Put `text` there."""
    head, _, tail = _split(page, name)
    page.write_text(head + text + tail, "utf-8")


def _split(page: Path, name: str) -> tuple[str, str, str]:
    begin, end = f"<!-- begin: {name} -->\n", f"<!-- end: {name} -->"
    head, found, rest = page.read_text("utf-8").partition(begin)
    text, closed, tail = rest.partition(end)
    if not (found and closed):
        raise ValueError(f"{page} has no part {name}")
    return head + begin, text, end + tail
