"""Where a report goes may hold anything: a stranger's checkout has links, pipes and folders."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from commandline import Cli, Said

Check = Callable[..., Said]
VICTIM = "the victim's own text"


@pytest.fixture
def checkout(tmp_path: Path, tiny_solution: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A student's checkout, in which a check runs, and beside it what must not be changed."""
    folder = tmp_path / "checkout"
    (folder / "exercises").mkdir(parents=True)
    (folder / "exercises" / "scale.py").write_text(tiny_solution)
    (tmp_path / "outside").mkdir()
    (tmp_path / "victim").write_text(VICTIM)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def check(cli: Cli, tiny_copy: Path) -> Check:
    def checking(*options: object) -> Said:
        return cli("check", "exercises", "--course", tiny_copy, *options)

    return checking


def unchanged(checkout: Path) -> bool:
    beside = checkout.parent
    return (beside / "victim").read_text() == VICTIM and not [*(beside / "outside").iterdir()]


OPTIONS = {"-o": ("--format", "html", "-o", "report.html"), "--also": ("--also=html=report.html",)}
IN_PLACE = {
    "a link": lambda path: path.symlink_to("../victim"),
    "a link to the environment": lambda path: path.symlink_to("/proc/self/environ"),
    "a link to nothing": lambda path: path.symlink_to("../outside/new"),
    "a hard link": lambda path: os.link("../victim", path),
    "a pipe": os.mkfifo,
    "a file that is read-only": lambda path: path.touch(0o400),
}


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("kind", IN_PLACE)
def test_a_report_replaces_what_lies_in_its_place_and_follows_nothing(
    kind: str, option: str, check: Check, checkout: Path
) -> None:
    report = checkout / "report.html"
    IN_PLACE[kind](report)
    assert check(*OPTIONS[option]).code == 0
    found = report.lstat()
    assert stat.S_ISREG(found.st_mode)
    assert found.st_nlink == 1
    assert report.read_text().startswith("<!doctype html>")
    assert unchanged(checkout)
    assert sorted(path.name for path in checkout.iterdir()) == ["exercises", "report.html"]


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("place", ["out", "deep/out", "./out", "exercises/../out"])
def test_a_report_goes_through_no_link_of_a_checkout(
    place: str, option: str, check: Check, checkout: Path
) -> None:
    (checkout / "deep").mkdir()
    (checkout / place).symlink_to(checkout.parent / "outside")
    options = [text.replace("report.html", f"{place}/report.html") for text in OPTIONS[option]]
    said = check(*options)
    assert said.code == 2
    assert "out is a link" in said.err
    assert unchanged(checkout)


def test_a_report_goes_through_no_link_of_a_folder_that_is_graded_from_elsewhere(
    check: Check, checkout: Path, cli: Cli, tiny_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (checkout / "out").symlink_to(checkout.parent / "outside")
    monkeypatch.chdir("/")
    said = cli("check", checkout, "--course", tiny_copy, "-o", checkout / "out" / "report.txt")
    assert (said.code, "out is a link" in said.err) == (2, True)
    assert unchanged(checkout)


def test_links_elsewhere_are_the_users_own(check: Check, checkout: Path) -> None:
    """Such as a folder of reports that lies on another disk."""
    mine = checkout.parent / "mine"
    mine.symlink_to("outside")
    assert check("-o", mine / "report.txt").code == 0
    assert check("--also=markdown=../mine/report.md").code == 0
    made = {path.name for path in (checkout.parent / "outside").iterdir()}
    assert made == {"report.txt", "report.md"}


def test_a_folder_in_the_place_of_a_report_is_named(check: Check, checkout: Path) -> None:
    (checkout / "report.html").mkdir()
    said = check("--also=html=report.html")
    assert (said.code, "cannot write report.html" in said.err) == (2, True)


def test_a_report_keeps_the_mode_of_the_one_before(check: Check, checkout: Path) -> None:
    old = os.umask(0o022)
    try:
        check("-o", "report.txt")
        assert stat.S_IMODE((checkout / "report.txt").stat().st_mode) == 0o644
        (checkout / "report.txt").chmod(0o640)
        check("-o", "report.txt")
        assert stat.S_IMODE((checkout / "report.txt").stat().st_mode) == 0o640
    finally:
        os.umask(old)


def test_a_report_goes_to_the_output_that_a_shell_names(check: Check, checkout: Path) -> None:
    read, write = os.pipe()
    assert check("-o", f"/dev/fd/{write}").code == 0
    assert check("-o", "/dev/null").code == 0
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        assert b"8 / 8" in pipe.read()
    assert stat.S_ISCHR(Path("/dev/null").lstat().st_mode)
