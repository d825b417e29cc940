"""The output of student code, cut to a size that a report can show."""

from __future__ import annotations

import io

from grader.sandbox import wire


class CapturedOutput(io.TextIOBase):
    """A `sys.stdout` that stores the output of the student's code, up to a limit for each test."""

    encoding = "utf-8"

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Drop all text and restore the limit, for a new test."""
        self._parts: list[str] = []
        self._room = wire.MAX_PRINTED

    def write(self, text: str) -> int:
        """Store `text` up to the limit; return its length."""
        if self._room > 0:
            self._parts.append(text[: self._room])
            self._room -= len(text)
            if self._room <= 0:
                self._parts.append("\n[more output was cut]\n")
        return len(text)

    def take(self) -> str:
        """Return the output since the last `take`."""
        text = "".join(self._parts)
        self._parts.clear()
        return text
