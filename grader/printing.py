"""A command's output, filtered: in a CI job, whose system would take some lines for orders.

GitHub obeys a line that begins with `::`, and `##[` anywhere in a line; Azure obeys `##vso[`,
GitLab `section_start:`. A stranger can put all of these into names of files, arguments and
messages. So while a command runs in such a job, this module filters both of its streams. The
grader's own orders are written to the stream behind the filter.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TextIO, cast

from grader.report import without_controls

SYSTEMS = ("GITHUB_ACTIONS", "GITLAB_CI", "TF_BUILD")  # variables that CI systems set in a job
_AT_START = re.compile(r"^([^\S\n]*):(?=:)", re.MULTILINE)
_ANYWHERE = re.compile(r"#(?=#\w*\[)|section_(?:start|end)(?=:)")


def without_orders(text: str) -> str:
    """Return whole lines of text so that no CI system finds an order in them."""
    text = _AT_START.sub(r"\1: ", without_controls(text))
    return _ANYWHERE.sub(lambda found: f"{found[0]} ", text)


def in_job() -> bool:
    """Return whether this is a job of a CI system."""
    return any(map(os.environ.get, SYSTEMS))


@contextlib.contextmanager
def without_orders_in_jobs() -> Iterator[None]:
    """In a job of a CI system, filter what is printed until the block ends."""
    with filtered(without_orders) if in_job() else contextlib.nullcontext():
        yield


@contextlib.contextmanager
def filtered(shown: Callable[[str], str]) -> Iterator[None]:
    """Print `shown` of whole lines in their place until the block ends."""
    before = sys.stdout, sys.stderr
    filters = [_Filtered(stream, shown) for stream in before]
    sys.stdout, sys.stderr = (cast(TextIO, stream) for stream in filters)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
        for stream in filters:
            with contextlib.suppress(OSError, ValueError):  # nobody reads the output any more
                stream.finish()


def behind_filter(stream: TextIO) -> TextIO:
    """Return the unfiltered stream, for orders or for a protocol of our own."""
    if isinstance(stream, _Filtered):
        stream.finish()
        return stream.stream
    return stream


class _Filtered:
    """A stream that passes on whole lines only, because half a line does not show what is in it."""

    def __init__(self, stream: TextIO, shown: Callable[[str], str]) -> None:
        self.stream, self._shown = stream, shown
        self._line = ""

    def write(self, text: str) -> int:
        """Write all whole lines, and keep the unfinished one."""
        *lines, self._line = (self._line + text).split("\n")
        if lines:
            self.stream.write(self._shown("\n".join([*lines, ""])))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write texts."""
        for line in lines:
            self.write(line)

    def finish(self) -> None:
        """Write the unfinished line as well."""
        rest, self._line = self._line, ""
        self.stream.write(self._shown(rest))
        self.stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)
