"""Clones are named by login, have the time of their commit, and run nothing."""

from __future__ import annotations

import os
import subprocess
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from handed_in import (
    NORM,
    by_student,
    place,
)

from grader.course.course import Course
from grader.report import Person
from grader.submissions.layouts import (
    LeftOut,
    collect,
    find_attempts,
)

WHEN = datetime(2026, 11, 5, 23, 30, tzinfo=timezone(timedelta(hours=1)))


def clone(folder: Path, *, when: datetime = WHEN, form: str = "sha1") -> Path:
    """Make a repository with one commit."""
    place(folder, "layer_norm.py", text=NORM)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_COMMITTER_DATE": when.isoformat(),
        "GIT_AUTHOR_DATE": "2020-01-01T00:00:00Z",
    }
    who = ["-c", "user.name=s001", "-c", "user.email=s001@example.org"]
    for command in (
        ["init", "-q", "-b", "main", f"--object-format={form}"],
        ["add", "layer_norm.py"],
        [*who, "commit", "-q", "-m", "Hand in\n\ncommitter s002 <x> 1 +0000"],
    ):
        subprocess.run(["git", *command], cwd=folder, env=environment, check=True)
    return folder


@pytest.mark.slow
def test_clones_are_named_by_login_and_have_the_time_of_their_last_commit(
    tmp_path: Path, course: Course
) -> None:
    folder = tmp_path / "lab-1-submissions"
    clone(folder / "lab-1-s001")
    clone(folder / "lab-1-s-002", form="sha256")
    packed = clone(folder / "lab-1-s003")
    subprocess.run(["git", "-C", packed, "pack-refs", "--all"], check=True)
    subprocess.run(["git", "-C", packed, "gc", "-q"], check=True)
    detached = clone(folder / "lab-1-s004")
    subprocess.run(["git", "-C", detached, "checkout", "-q", "--detach"], check=True)
    place(folder, "lab-1-s005/layer_norm.py", "grades.csv")
    (folder / "lab-1-s006/.git").mkdir(parents=True)
    found = find_attempts(folder, course)
    assert found.layout == "clones"
    assert found.left_out == (LeftOut("grades.csv", "is neither a folder nor a zip"),)
    people = by_student(found)
    assert {student: one.submitted for student, one in people.items()} == {
        "s001": WHEN,
        "s-002": WHEN,
        "s003": WHEN,
        "s004": WHEN,
        "s005": None,
        "s006": None,
    }
    assert people["s001"].submitted.utcoffset() == timedelta(hours=1)
    assert people["s-002"].person == Person(login="s-002")
    assert collect(people["s001"], course).files == {"layer_norm": NORM}


@pytest.mark.parametrize(
    ("names", "logins"),
    [
        (("lab-1-s001", "lab-1-s002"), ["s001", "s002"]),
        (("s001", "s002"), ["s001", "s002"]),
        (("lab-1-s001",), ["lab-1-s001"]),
        (("lab-s001", "lab-"), ["lab-", "s001"]),
        (("lab-s001", "lib-s001"), ["lab-s001", "lib-s001"]),
    ],
)
def test_the_prefix_of_all_clones_is_not_part_of_a_login(
    names: tuple[str, ...], logins: list[str], tmp_path: Path, course: Course
) -> None:
    for name in names:
        (tmp_path / name / ".git").mkdir(parents=True)
    assert sorted(by_student(find_attempts(tmp_path, course))) == logins


EVIL = """
[core]
    repositoryformatversion = 1
    fsmonitor = "{hook}"
    sshCommand = "{hook}"
    gitProxy = "{hook}"
    pager = "{hook}"
[alias]
    cat-file = "!{hook}"
[remote "origin"]
    url = "ext::{hook}"
    promisor = true
[protocol]
    allow = always
[extensions]
    partialClone = origin
"""


@pytest.mark.parametrize("naive", [["status"], ["cat-file", "-s", "1" * 40]], ids=" ".join)
def test_no_command_in_a_clones_configuration_is_run(
    naive: list[str], tmp_path: Path, course: Course
) -> None:
    marker, hook = tmp_path / "marker", tmp_path / "hook"
    folder = clone(tmp_path / "class/s001")
    hook.write_text(f"#!/bin/sh\ntouch {marker}\n")
    hook.chmod(0o700)
    (folder / ".git/config").write_text(EVIL.format(hook=hook))
    if "cat-file" in naive:  # git would fetch the missing object
        (folder / ".git/HEAD").write_text("1" * 40)
    before = sorted(folder.rglob("*"))
    (attempt,) = find_attempts(tmp_path / "class", course, "clones").attempts
    assert attempt.submitted == (None if "cat-file" in naive else WHEN)
    assert collect(attempt, course).files == {"layer_norm": NORM}
    assert not marker.exists()
    assert sorted(folder.rglob("*")) == before
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run(["git", "-C", folder, *naive], check=False, **quiet)
    assert marker.exists()  # git in the clone itself runs the hook


HEADS = {
    "nothing": b"",
    "no reference": b"ref: refs/heads/none\n",
    "another file": b"ref: refs/../../../stolen\n",
    "no hash": b"g" * 40,
    "an option": b"--textconv",
    "an unknown hash": b"0" * 40,
    "bytes": bytes(range(256)) * 100,
}


@pytest.mark.parametrize("what", HEADS)
def test_an_odd_clone_has_no_time(what: str, tmp_path: Path, course: Course) -> None:
    folder = clone(tmp_path / "class/s001")
    (tmp_path / "class/stolen").write_bytes((folder / ".git/refs/heads/main").read_bytes())
    (folder / ".git/HEAD").write_bytes(HEADS[what])
    (attempt,) = find_attempts(tmp_path / "class", course, "clones").attempts
    assert attempt.submitted is None


def test_a_clone_without_git_or_with_a_pipe_in_it_has_no_time(
    tmp_path: Path, course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    piped = clone(tmp_path / "class/s001")
    (piped / ".git/HEAD").unlink()
    os.mkfifo(piped / ".git/HEAD")
    whole = clone(tmp_path / "class/s002")
    linked = place(tmp_path / "class/s003", "layer_norm.py")
    (linked / ".git").symlink_to(whole / ".git")
    people = by_student(find_attempts(tmp_path / "class", course))
    assert {student: one.submitted for student, one in people.items()} == {
        "s001": None,
        "s002": WHEN,
        "s003": None,
    }
    monkeypatch.setenv("PATH", str(tmp_path))
    assert by_student(find_attempts(tmp_path / "class", course))["s002"].submitted is None
