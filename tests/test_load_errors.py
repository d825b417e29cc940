"""A file that does not load is what to fix first, whatever its checks ask for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commandline import Cli

TINY = Path(__file__).parent / "tiny"
DOES_NOT_LOAD = {
    "no Python": ("def scale(x, factor:\n", "your code raised SyntaxError: '(' was never closed."),
    "an assert of the student's own": (
        "def scale(x, factor): return x\nassert scale(1, 2) == 2, 'own test'\n",
        "your code raised AssertionError: own test; put what only tries the code under "
        '`if __name__ == "__main__":`.',
    ),
    "an endless loop": (
        "def scale(x, factor): return x\nwhile True: pass\n",
        "your code did not finish within 1 seconds; it was at `while True: pass`; put what "
        'only tries the code under `if __name__ == "__main__":`.',
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", DOES_NOT_LOAD)
def test_a_report_begins_with_the_error_that_keeps_a_file_from_loading(
    what: str, tmp_path: Path, tiny_copy: Path, cli: Cli
) -> None:
    settings = tiny_copy / "reference/scale/exercise.toml"
    settings.write_text(settings.read_text().replace("call_seconds = 60", "call_seconds = 1"))
    text, why = DOES_NOT_LOAD[what]
    (tmp_path / "work").mkdir()
    (tmp_path / "work/scale.py").write_text(text)
    said = cli("check", tmp_path / "work", "--course", tiny_copy, "--format", "json").out
    report = json.loads(said)
    assert report["advice"] == f"Fix Scale first: scale.py cannot be loaded, because {why}"
    assert any(test["loading"] for test in report["exercises"][0]["tests"])


def test_every_form_of_a_report_has_the_error_of_loading_as_its_headline(
    tmp_path: Path, cli: Cli
) -> None:
    (tmp_path / "scale.py").write_text("def scale(x, factor:\n")
    shown = {
        form: cli("check", tmp_path, "--course", TINY, "--format", form).out
        for form in ("markdown", "text", "github", "html")
    }
    assert "**`scale.py` cannot be loaded.**" in shown["markdown"]
    assert "scale: scale.py cannot be loaded." in shown["text"]
    assert "::scale.py cannot be loaded." in shown["github"]
    assert "Fix this first: scale.py cannot be loaded." in shown["html"]
    assert "doubles" not in shown["github"].partition("::error")[2]


def test_an_error_of_one_call_is_no_load_error(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "scale.py").write_text("def scale(x, factor): return 1 / 0\n")
    said = cli("check", tmp_path, "--course", TINY, "--format", "json")
    report = json.loads(said.out)
    assert report["advice"].startswith("Fix Scale first. This does not hold yet: ")
    assert not any(test["loading"] for test in report["exercises"][0]["tests"])
