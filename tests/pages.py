"""Keeping a measured table in a page of docs/, between the marks that name it."""

from __future__ import annotations

from pathlib import Path


def keep(page: Path, name: str, text: str) -> None:
    """Put `text` between `<!-- begin: NAME -->` and `<!-- end: NAME -->`."""
    begin, end = f"<!-- begin: {name} -->\n", f"<!-- end: {name} -->"
    head, found, rest = page.read_text("utf-8").partition(begin)
    _, closed, tail = rest.partition(end)
    if not (found and closed):
        raise ValueError(f"{page} has no part {name}")
    page.write_text(head + begin + text + end + tail, "utf-8")
