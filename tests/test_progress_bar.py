"""Progress on long work stays on one line of the terminal, and ends without a trace."""

from __future__ import annotations

import io
import re
import sys

import pytest

from grader.commands.options import progress_bar

LONG = "histogram_transformer"
NOTE = "training counting, step 12345, loss 0.00123, and so on and on"


class Terminal(io.StringIO):
    """An error stream that is a terminal."""

    def isatty(self) -> bool:
        return True


def written(monkeypatch: pytest.MonkeyPatch, total: int) -> str:
    """Return what is written to a terminal of 80 columns while some work is done."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "80")
    with progress_bar(total) as on_exercise:
        for _ in range(total):
            on_exercise(LONG)
            on_exercise(LONG, NOTE)
    return terminal.getvalue()


@pytest.mark.parametrize("total", [1, 3])
def test_a_line_of_progress_never_wraps(monkeypatch: pytest.MonkeyPatch, total: int) -> None:
    text = re.sub(r"\x1b\[[?\d]*[A-Za-z]", "\r", written(monkeypatch, total))
    lines = re.split(r"[\r\n]", text)
    assert any("step 12345" in line for line in lines)
    assert max(map(len, lines)) < 80
    assert ("33%" in text) == (total == 3)


def test_without_a_terminal_nothing_is_written(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with progress_bar(2) as on_exercise:
        on_exercise(LONG, NOTE)
    assert capsys.readouterr() == ("", "")
