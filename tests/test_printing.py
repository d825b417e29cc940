"""What is printed in a job of a CI system gives it no orders, whoever chose the words."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest
from commandline import Cli, Said

from grader.printing import SYSTEMS, behind_filter, without_orders, without_orders_in_jobs

ORDERS = (
    "::error::X",
    "  ::error file=a,line=1::X",
    "\t::add-mask::100",
    "::stop-commands::x",
    "\u00a0::set-output name=a::b",
    "\x1b[0m::error::X",
    "\x00::error::X",
    "\u202e::error::X",
    "::::error::X",
    "##[group]X",
    "a ##[error]X",
    "###[command]X",
    "a ##vso[task.setvariable variable=a]b",
    "section_start:1560896352:name\r\x1b[0K",
    "section_end:1560896352:name\r\x1b[0K",
)


HIDDEN = "\x00\u202e"  # nobody sees them, and some programs leave them out


REFUSAL = "::error title=Nothing was graded::"


def obeyed(text: str) -> list[str]:
    """The lines that GitHub, Azure or GitLab would take for orders."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    anywhere = ("##[", "##vso[", "section_start:", "section_end:", "\x1b")
    return [
        line
        for line in lines
        if line.strip().startswith("::") or any(order in line for order in anywhere)
    ]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("before", ["", "a\n", "a\r", "a\r\n", "a\n\n \n"])
def test_no_order_is_left_in_a_text(before: str, order: str) -> None:
    assert obeyed(f"{before}{order.lstrip(HIDDEN)}\n")
    assert obeyed(without_orders(f"{before}{order}\n")) == []


def test_other_text_stays_as_it_is() -> None:
    text = "tests/test_scale.py::test_twice\n  a: b\n# title\n#[x] ## [x]\n✓ 8 / 8  ██\n"
    assert without_orders(text) == text


@pytest.fixture(params=SYSTEMS)
def job(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A job of one of the systems."""
    monkeypatch.setenv(request.param, "true")
    return str(request.param)


def silent(said: Said) -> bool:
    """Whether a refusal gives no order but the grader's own, in which all is one line of data."""
    given = obeyed(said.out + said.err)
    ours = [line for line in given if line.startswith(REFUSAL) and "##[" not in line]
    return said.code == 2 and bool(said.err) and given == ours and "\x1b" not in said.out


@pytest.mark.parametrize("order", ORDERS)
def test_an_argument_that_is_wrong_gives_no_orders(
    order: str, cli: Cli, tiny_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    text = f"a\n{order}".replace("\0", "")
    for arguments in (
        (text,),
        (f"--{text}",),
        ("check", text, "--course", tiny_copy),
        ("check", f"--{text}"),
        ("check", "--seed", text),
        ("check", "--also", f"{text}=x"),
        ("check", "--format", text),
        ("check", "--course", text),
        ("check", "--bundle", text),
        ("check", "--course", tiny_copy, "-o", f"{text}/x", tiny_copy),
    ):
        assert silent(cli(*arguments)), arguments


def test_a_folder_with_an_order_in_its_name_gives_none(
    job: str, cli: Cli, tiny_copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "a\n::error::X\n##[error]X\nsection_start:1:a"
    (folder / "exercises").mkdir(parents=True)
    monkeypatch.chdir(folder)
    assert silent(cli("check"))
    assert silent(cli("check", ".", "--course", tiny_copy))
    (folder / "exercises" / "course.json").write_text("{")
    assert silent(cli("check"))


def test_a_failure_of_the_grader_itself_gives_no_orders(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its traceback, too."""

    def fails(*_: object, **options: object) -> None:
        raise ValueError("a\n::error::X")

    monkeypatch.setattr("grader.commands.check.work.starting", fails)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GRADER_DEBUG", "1")
    said = cli("check")
    assert (said.code, "Traceback" in said.err, obeyed(said.err)) == (3, True, [])


def test_outside_of_a_job_a_name_moves_no_cursor_and_begins_no_line(cli: Cli) -> None:
    said = cli("check", "a\x1b]0;title\x07\ngrader: all passed")
    assert said.code == 2
    assert "\x1b" not in said.err
    assert "\ngrader: all passed" not in said.err


def test_a_line_is_judged_as_a_whole_however_it_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    with without_orders_in_jobs():
        for piece in ("a\n", " ", ":", ":error::X\n#", "#[error]X\n", "::warning"):
            sys.stdout.write(piece)
            sys.stdout.flush()
        sys.stdout.writelines([":", ":Y\n"])
        print("::error::Z", end="")
        behind_filter(sys.stdout).write("\n::notice::ours\n")
    assert obeyed(stream.getvalue()) == ["::notice::ours"]
    assert sys.stdout is stream


def test_a_process_prints_all_of_its_last_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    command = [sys.executable, "-m", "grader", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("attention-grader ")
