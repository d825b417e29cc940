"""A class of git clones: what is odd about a clone is flagged, and the work before a deadline."""

from __future__ import annotations

import hashlib
import os
import subprocess
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from classroom import Instant, hand_in, marks, report_of
from commandline import Cli
from handed_in import notebook, zipped

from grader.course.course import Course
from grader.course.stubs import make_stub
from grader.submissions import opening
from grader.submissions.layouts import commits

pytestmark = pytest.mark.in_turn

ROOT = Path(__file__).parent.parent
TINY = ROOT / "tests" / "tiny"
DUE = datetime(2026, 11, 5, 12, tzinfo=UTC)
SIX, TWO = "# 6 points\nx = 1\n", "# 2 points\nx = 2\n"
HOUR = timedelta(hours=1)


def git(folder: Path, *arguments: str, when: datetime = DUE, given: str = "") -> str:
    """Run git in a clone, as a student does."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_COMMITTER_DATE": when.isoformat(),
        "GIT_AUTHOR_DATE": when.isoformat(),
    }
    who = ["-c", "user.name=s001", "-c", "user.email=s001@example.org"]
    command = ["git", *who, *arguments]
    return subprocess.check_output(command, cwd=folder, env=environment, text=True, input=given)


def commit(folder: Path, when: datetime = DUE - HOUR, **files: str) -> Path:
    """Commit files, called `scale` for `scale.py`, in a clone that is made if there is none."""
    hand_in(folder, {f"{name}.py": text for name, text in files.items()})
    if not (folder / ".git").exists():
        git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", "Work", when=when)
    return folder


def flags(tmp_path: Path, student: str) -> list[str]:
    return [str(flag) for flag in report_of(tmp_path / "out", student)["flags"]]


@pytest.fixture
def stub(tiny_course: Course) -> str:
    return make_stub(tiny_course["scale"])


@pytest.fixture
def batch(cli: Cli, instant: Instant, tmp_path: Path) -> Cli:
    """Grade the clones in `class`; s009 is a neighbour whom nothing affects."""
    commit(tmp_path / "class/s009", scale="# 5 points\nx = 1\n")

    def grading(*arguments: object, course: Path = TINY) -> dict[str, str]:
        out = tmp_path / "out"
        said = cli("batch", tmp_path / "class", "--out", out, "--course", course, *arguments)
        assert said.code in (0, 1), said
        points = marks(out)
        assert points.pop("s009") == "5"
        assert flags(tmp_path, "s009") == []
        return points

    return grading  # type: ignore[return-value]


@pytest.mark.slow
def test_what_is_odd_about_a_clone_is_flagged(tmp_path: Path, batch: Cli, stub: str) -> None:
    folder = tmp_path / "class"
    git(commit(folder / "s001", scale=SIX), "checkout", "-q", "--detach")
    hand_in(commit(folder / "s002", scale=TWO), {"scale.py": SIX})
    commit(folder / "s003", scale=stub)
    hand_in(commit(folder / "s004", scale=stub), {"scale.py": SIX})
    hand_in(commit(folder / "s005", readme="x = 1\n"), {"scale.py": SIX})
    hand_in(folder, {"s006/scale.py": SIX})
    (commit(folder / "s007", scale=SIX) / ".git/HEAD").write_text("ref: refs/heads/none\n")
    assert batch() == {
        **dict.fromkeys(("s001", "s002", "s004", "s005", "s006", "s007"), "6"),
        "s003": "8",  # the engine of this test gives all points
    }
    edits = "edits are not committed: `scale.py`; needs review"
    never = "there is no commit after the stub: the student never committed; needs review"
    assert "no branch is checked out (detached HEAD)" in flags(tmp_path, "s001")[0]
    assert flags(tmp_path, "s002") == [edits]
    assert flags(tmp_path, "s003") == [never]
    assert flags(tmp_path, "s004") == [edits, never]
    assert flags(tmp_path, "s005") == [edits, never]
    assert flags(tmp_path, "s006") == ["it is no git clone; needs review"]
    assert "the commit that is checked out cannot be read" in flags(tmp_path, "s007")[0]
    assert all(len(flags(tmp_path, student)) == 1 for student in ("s001", "s006", "s007"))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["scale (1)", "Scale", "homework"])
def test_work_under_another_name_is_a_commit_after_the_stub(
    name: str, tmp_path: Path, batch: Cli, stub: str
) -> None:
    work = "# 6 points\ndef scale(x, factor): return x\n"
    commit(tmp_path / "class/s001", scale=stub, **{name: work})
    assert batch() == {"s001": "6"}
    assert not any("commit" in flag for flag in flags(tmp_path, "s001"))


NO_WORK = {
    "a notebook about something else": {"intro.ipynb": notebook("print(1)")},
    "an empty notebook": {"scale.ipynb": ""},
    "another name": {"main.py": "def scale_demo():\n    pass\nrescale = 1\n"},
    "a comment": {"Scale (1).py": "# to do\n"},
}


@pytest.mark.slow
@pytest.mark.parametrize("more", NO_WORK.values(), ids=NO_WORK)
@pytest.mark.parametrize("is_empty", [False, True])
def test_what_is_no_work_for_an_exercise_is_no_commit_after_the_stub(
    more: dict[str, str], is_empty: bool, tmp_path: Path, batch: Cli, stub: str
) -> None:
    hand_in(tmp_path / "class/s001", more)
    commit(tmp_path / "class/s001", scale="" if is_empty else stub)
    batch()
    assert any("the student never committed" in flag for flag in flags(tmp_path, "s001"))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["homework.ipynb", "Scale (1).ipynb"])
def test_work_in_a_notebook_is_a_commit_after_the_stub(
    name: str, tmp_path: Path, batch: Cli, stub: str
) -> None:
    text = "import torch\n\nclass Scale: pass\ndef scale(x, factor): return x\n# 6 points\n"
    hand_in(tmp_path / "class/s001", {name: notebook(text)})
    commit(tmp_path / "class/s001", scale=stub)
    assert batch() == {"s001": "6"}
    assert not any("never committed" in flag for flag in flags(tmp_path, "s001"))


@pytest.mark.slow
def test_line_ends_that_git_has_written_are_no_edits(tmp_path: Path, batch: Cli) -> None:
    commit(tmp_path / "class/s001", scale=SIX)
    (tmp_path / "class/s001/scale.py").write_bytes(SIX.replace("\n", "\r\n").encode())
    commit(tmp_path / "class/s002", scale=SIX)
    hand_in(tmp_path / "class/s002", {"notes.py": "x = 1\n", "venv/lib/x.py": "x = 1\n"})
    assert batch() == {"s001": "6", "s002": "6"}
    assert flags(tmp_path, "s001") == flags(tmp_path, "s002") == []


@pytest.mark.slow
def test_work_on_the_only_other_branch_with_work_is_graded(
    tmp_path: Path, batch: Cli, stub: str
) -> None:
    folder = tmp_path / "class"
    for student in ("s001", "s002", "s003", "s004", "s005"):
        commit(folder / student, DUE - 2 * HOUR, scale=stub)
        git(folder / student, "checkout", "-q", "-b", "my/work")
        commit(folder / student, scale=SIX)
    for student in ("s001", "s002", "s003", "s005"):
        git(folder / student, "checkout", "-q", "main")
    git(folder / "s002", "branch", "-q", "older", "my/work~0")  # the same commit once more
    git(folder / "s002", "pack-refs", "--all")
    git(folder / "s003", "checkout", "-q", "-b", "other")
    git(commit(folder / "s003", scale=TWO), "checkout", "-q", "main")
    git(commit(folder / "s005", scale=TWO), "checkout", "-q", "main")
    git(commit(folder / "s006", scale=SIX), "branch", "-q", "feedback")  # as GitHub makes one
    commit(folder / "s006", scale=SIX + "y = 1\n")
    points = batch()
    assert {one: points[one] for one in ("s001", "s002", "s004", "s005", "s006")} == {
        **dict.fromkeys(("s001", "s002", "s004", "s006"), "6"),
        "s005": "2",
    }
    used = "the branch that is checked out has no work, so {} was used; needs review"
    assert flags(tmp_path, "s001") == [used.format("`my/work`")]
    assert report_of(tmp_path / "out", "s001")["submitted"] == (DUE - HOUR).isoformat()
    assert flags(tmp_path, "s002") in ([used.format("`my/work`")], [used.format("`older`")])
    both = "there is other work on `my/work`, `other`, which was not used; needs review"
    assert flags(tmp_path, "s003") in (
        [both],
        [both.replace("`my/work`, `other`", "`other`, `my/work`")],
    )
    assert flags(tmp_path, "s004") == flags(tmp_path, "s006") == []
    assert flags(tmp_path, "s005") == []  # its branch has no exercise that the other lacks


@pytest.mark.slow
@pytest.mark.parametrize(
    ("later", "is_later"),
    [
        ({"week2/other.py": "y = 1\n", "README.md": "done\n"}, False),
        ({"scale.py": SIX + "y = 1\n"}, True),
        ({"helper.py": "y = 1\n"}, True),  # which the work may import
    ],
)
def test_the_time_is_that_of_the_last_commit_to_the_work(
    later: dict[str, str], is_later: bool, tmp_path: Path, batch: Cli
) -> None:
    clone = commit(tmp_path / "class/s001", scale=SIX)
    hand_in(clone, later)
    commit(clone, DUE + 9 * HOUR)
    assert batch() == {"s001": "6"}
    time = DUE + 9 * HOUR if is_later else DUE - HOUR
    assert report_of(tmp_path / "out", "s001")["submitted"] == time.isoformat()
    assert flags(tmp_path, "s001") == []


@pytest.mark.slow
def test_many_files_beside_the_work_hide_no_later_commit(tmp_path: Path, batch: Cli) -> None:
    many = {f"a{number:03}": "y = 1\n" for number in range(commits.MAX_CHANGED)}
    clone = commit(tmp_path / "class/s001", **many, scale=TWO)
    commit(clone, DUE + 9 * HOUR, scale=SIX)
    assert batch() == {"s001": "6"}
    assert report_of(tmp_path / "out", "s001")["submitted"] == (DUE + 9 * HOUR).isoformat()


@pytest.mark.slow
def test_work_for_another_list_of_the_course_is_not_later_work(
    tmp_path: Path, cli: Cli, instant: Instant
) -> None:
    clone = commit(tmp_path / "class/s001", layer_norm=SIX)
    commit(clone, DUE + 9 * HOUR, kv_cache=SIX)  # in the list `full`
    arguments = "--out", tmp_path / "out", "--course", ROOT, "--course-list", "core"
    assert cli("batch", tmp_path / "class", *arguments).code in (0, 1)
    assert report_of(tmp_path / "out", "s001")["submitted"] == (DUE - HOUR).isoformat()


@pytest.mark.slow
def test_later_work_on_another_branch_is_flagged(tmp_path: Path, batch: Cli) -> None:
    clone = commit(tmp_path / "class/s001", scale=TWO)
    git(clone, "checkout", "-q", "-b", "better")
    git(commit(clone, scale=SIX), "checkout", "-q", "main")
    assert batch() == {"s001": "2"}
    says = "there is other work on `better`, which was not used; needs review"
    assert flags(tmp_path, "s001") == [says]


@pytest.mark.slow
def test_a_commit_that_is_dated_before_its_parent_is_flagged(tmp_path: Path, batch: Cli) -> None:
    clone = commit(tmp_path / "class/s001", DUE, scale=TWO)
    commit(clone, DUE - 9 * HOUR, scale=SIX)
    backdated = git(clone, "rev-parse", "HEAD").strip()
    commit(clone, DUE + HOUR, scale=SIX)
    assert batch() == {"s001": "6"}
    says = f"commit `{backdated[:10]}` is dated before its parent; needs review"
    assert flags(tmp_path, "s001") == [says]


@pytest.mark.slow
def test_a_submodule_without_files_is_flagged(tmp_path: Path, batch: Cli, due: Path) -> None:
    inner = commit(tmp_path / "inner", scale=SIX)
    clone = tmp_path / "class/s001"
    commit(clone, readme="x = 1\n")
    head = git(inner, "rev-parse", "HEAD").strip()
    for place in ("work", "more"):
        git(clone, "update-index", "--add", "--cacheinfo", f"160000,{head},{place}")
        (clone / place).mkdir()
    hand_in(clone, {"more/scale.py": "# 6 points\nx = 1\n"})
    git(clone, "commit", "-q", "-m", "Work", when=DUE - HOUR)
    assert batch(course=due) == {"s001": "6"}
    fix = "run `git submodule update --init` in the clone"
    says = f"`work` is a git submodule without files here; {fix}; needs review"
    assert says in flags(tmp_path, "s001")
    assert not any("`more` is a git" in flag for flag in flags(tmp_path, "s001"))
    batch("--before-due", "--replace", course=due)
    says = "is a git submodule, whose files are no part of that commit"
    assert all(f"`{place}` {says}" in str(flags(tmp_path, "s001")) for place in ("more", "work"))


@pytest.mark.slow
def test_files_that_git_lfs_keeps_are_found_and_are_no_edits(
    tmp_path: Path, batch: Cli, due: Path
) -> None:
    digest = hashlib.sha256(SIX.encode()).hexdigest()
    head = "version https://git-lfs.github.com/spec/v1"
    pointer = f"{head}\noid sha256:{digest}\nsize {len(SIX)}\n"
    clone = commit(tmp_path / "class/s001", scale=pointer)
    hand_in(clone, {"scale.py": SIX, f".git/lfs/objects/{digest[:2]}/{digest[2:4]}/{digest}": SIX})
    commit(tmp_path / "class/s002", scale=pointer)
    forged = hand_in(tmp_path / "forged", {"scale.py": TWO}) / "scale.py"
    other = commit(tmp_path / "class/s003", scale=pointer)
    hand_in(other, {f".git/lfs/objects/{digest[:2]}/{digest[2:4]}/{digest}": forged.read_text()})
    assert batch(course=due) == {"s001": "6", "s002": "0", "s003": "0"}
    assert flags(tmp_path, "s001") == []
    assert "is a pointer of Git LFS" in flags(tmp_path, "s002")[0]
    points = batch("--before-due", "--replace", course=due)
    assert points == {"s001": "6", "s002": "0", "s003": "0"}


@pytest.fixture
def due(tiny_copy: Path) -> Path:
    """The tiny course, with a deadline."""
    settings = tiny_copy / "reference/course.toml"
    text = f"due = {DUE.isoformat()}\n" + settings.read_text()
    settings.write_text(f"{text}\n[late]\nper_day = 50\ngrace_minutes = 10\n")
    return tiny_copy


@pytest.mark.slow
def test_the_last_commit_before_each_students_deadline_is_graded(
    tmp_path: Path, batch: Cli, due: Path
) -> None:
    folder = tmp_path / "class"
    for student in ("s001", "s002", "s003", "s004"):
        commit(folder / student, DUE - 2 * HOUR, scale=TWO)
        commit(folder / student, DUE - HOUR, scale="# 4 points\nx = 1\n")
        commit(folder / student, DUE + HOUR, scale=SIX)
    git(folder / "s003", "gc", "-q")
    git(folder / "s004", "checkout", "-q", "HEAD~2")
    commit(folder / "s005", DUE + HOUR, scale=SIX)
    commit(folder / "s006", DUE + HOUR / 6, scale=SIX)  # within the grace period
    commit(folder / "s007", DUE - HOUR, **{"hw/scale": "# 3 points\nx = 1\n", "hw/Scale (1)": SIX})
    hand_in(folder / "s007", {"scale.py": SIX})
    roster = tmp_path / "class.csv"
    students = [f"s00{number},\n" for number in (1, 3, 4, 5, 6, 7, 9)]
    extended = (DUE + 2 * HOUR).isoformat()
    roster.write_text(f"id,due\ns002,{extended}\n" + "".join(students))
    points = batch("--before-due", "--roster", roster, course=due)
    assert points == {
        "s001": "4",
        "s002": "6",
        "s003": "4",
        "s004": "2",
        "s005": "0",
        "s006": "6",
        "s007": "3",
    }
    report = report_of(tmp_path / "out", "s001")
    assert report["submitted"] == (DUE - HOUR).isoformat()
    assert report["flags"] == []
    (note,) = report["notes"]
    assert note.startswith("the last commit before 2026-11-05 12:10 UTC was used (")
    assert note.endswith("; later commits were left out")
    assert "later commits" not in report_of(tmp_path / "out", "s002")["notes"][0]
    assert "could not be read: there is no commit before 2026-11-05" in flags(tmp_path, "s005")[0]
    late = dict.fromkeys(("s001", "s003", "s005"), "3")  # 6 points, of which half count
    same = {"s002": "6", "s004": "2", "s006": "6"}
    assert batch("--roster", roster, course=due) == points  # what was asked for is remembered
    more = "--no-before-due", "--replace"
    assert batch("--roster", roster, *more, course=due) == {**late, **same, "s007": "6"}


@pytest.mark.slow
def test_a_shallow_clone_says_how_to_fetch_what_it_lacks(
    tmp_path: Path, batch: Cli, due: Path
) -> None:
    whole = commit(tmp_path / "whole", DUE - HOUR, scale=SIX)
    commit(whole, DUE + HOUR, scale=TWO)
    (tmp_path / "class").mkdir(exist_ok=True)
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{whole}", "class/s001")
    assert batch("--before-due", course=due) == {"s001": "0"}
    flag = flags(tmp_path, "s001")[0]
    until = "2026-11-05 12:10 UTC"
    assert f"the clone is shallow and holds no commit before {until}; run" in flag
    assert "run `git fetch --unshallow` in it" in flag
    git(tmp_path / "class/s001", "fetch", "-q", "--unshallow")
    assert batch("--before-due", course=due) == {"s001": "6"}


@pytest.mark.slow
def test_a_commit_of_more_files_than_are_read_is_graded_by_the_nearest(
    tmp_path: Path, batch: Cli, due: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commits, "MAX_FILES", 100)
    monkeypatch.setattr(commits, "MAX_BLOBS", commits.ROOM_FOR_NAMES + (2 << 20))
    installed = {f"venv/lib/python3.12/site-packages/m{n}.py": f"x = {n}\n" for n in range(101)}
    data = {f"a/data/m{number}.py": f"x = {number}\n" for number in range(101)}
    large = {f"a/{n}.ipynb": str(n) * (1 << 20) for n in range(2)}
    for student, more in {"s001": installed, "s002": data, "s003": large}.items():
        folder = tmp_path / "class" / student
        hand_in(folder, more)
        commit(folder, scale=SIX)
    assert batch("--before-due", course=due) == dict.fromkeys(("s001", "s002", "s003"), "6")
    assert flags(tmp_path, "s001") == []
    left = "{} files of that commit were left out, because it is too large; needs review"
    assert left.format(2) in flags(tmp_path, "s002")
    assert left.format(1) in flags(tmp_path, "s003")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda folder: hand_in(folder, {"s001/scale.py": SIX}), "and this is the plain layout"),
        (lambda folder: zipped(folder / "s001.zip", {"scale.py": SIX}), "the plain layout"),
    ],
)
def test_other_layouts_have_no_commits_before_a_deadline(
    make: object, said: str, tmp_path: Path, cli: Cli, due: Path
) -> None:
    make(tmp_path / "class")  # type: ignore[operator]
    refused = cli(
        "batch", tmp_path / "class", "--out", tmp_path / "out", "--course", due, "--before-due"
    )
    assert refused.code == 2
    assert said in refused.err
    assert "leave out --before-due" in refused.err


def test_without_a_deadline_there_is_no_commit_before_it(tmp_path: Path, cli: Cli) -> None:
    commit(tmp_path / "class/s001", scale=SIX)
    refused = cli(
        "batch", tmp_path / "class", "--out", tmp_path / "out", "--course", TINY, "--before-due"
    )
    assert refused.code == 2
    assert "--before-due needs a deadline, and s001 has none" in refused.err


EVIL = """
[core]
    fsmonitor = "{hook}"
    sshCommand = "{hook}"
    pager = "{hook}"
[alias]
    cat-file = "!{hook}"
    ls-tree = "!{hook}"
    rev-list = "!{hook}"
[filter "evil"]
    smudge = "{hook}"
    clean = "{hook}"
[diff "evil"]
    textconv = "{hook}"
"""


@pytest.mark.slow
def test_nothing_that_a_clone_configures_is_run(tmp_path: Path, batch: Cli, due: Path) -> None:
    clone = commit(tmp_path / "class/s001", scale=SIX)
    marker, hook = tmp_path / "marker", tmp_path / "hook"
    hook.write_text(f"#!/bin/sh\ntouch {marker}\ncat\n")
    hook.chmod(0o700)
    (clone / ".gitattributes").write_text("*.py filter=evil diff=evil\n")
    commit(clone, DUE + HOUR, scale=TWO)
    (clone / ".git/config").write_text(EVIL.format(hook=hook))
    for name in ("post-checkout", "post-index-change", "fsmonitor-watchman"):
        (clone / ".git/hooks").mkdir(exist_ok=True)
        (clone / ".git/hooks" / name).symlink_to(hook)
    before = sorted(path for path in clone.rglob("*") if path.is_file())
    assert batch("--before-due", course=due) == {"s001": "6"}
    assert not marker.exists()
    assert sorted(path for path in clone.rglob("*") if path.is_file()) == before
    subprocess.run(["git", "status"], cwd=clone, check=False, capture_output=True)
    assert marker.exists()  # git in the clone itself runs the hook


def tree_with(clone: Path, *entries: str) -> str:
    """Return a tree made by hand, whose entries may have any names."""
    blob = subprocess.check_output(
        ["git", "hash-object", "-w", "--stdin"], cwd=clone, input=b"# 6 points\nx = 1\n"
    )
    raw = b"".join(
        b"100644 " + name.encode() + b"\0" + bytes.fromhex(blob.decode().strip())
        for name in entries
    )
    command = ["git", "hash-object", "-w", "-t", "tree", "--literally", "--stdin"]
    return subprocess.check_output(command, cwd=clone, input=raw).decode().strip()


@pytest.mark.slow
def test_a_commit_with_evil_names_writes_nothing_elsewhere(
    tmp_path: Path, batch: Cli, due: Path
) -> None:
    clone = commit(tmp_path / "class/s001", scale=TWO)
    tree = tree_with(clone, "../../../evil.py", "..", "/evil.py", "a\nb.py", "scale.py")
    made = git(clone, "commit-tree", tree, "-m", "Evil", when=DUE - HOUR / 2).strip()
    git(clone, "update-ref", "refs/heads/main", made)
    assert batch("--before-due", course=due) == {"s001": "6"}
    assert not list(tmp_path.rglob("evil.py"))


@pytest.mark.slow
def test_a_clone_of_too_many_files_keeps_its_time(tmp_path: Path, batch: Cli) -> None:
    commit(tmp_path / "class/s001", scale=SIX)
    data = tmp_path / "class/s001/data"
    data.mkdir()
    for number in range(opening.MAX_ENTRIES + 1):
        (data / f"{number}.txt").touch()
    assert batch() == {"s001": "6"}
    assert report_of(tmp_path / "out", "s001")["submitted"] == (DUE - HOUR).isoformat()
    assert flags(tmp_path, "s001") == ["its files cannot be compared with its commit; needs review"]


@pytest.mark.slow
def test_a_commit_of_tangled_names_takes_no_time(tmp_path: Path, batch: Cli) -> None:
    clone = commit(tmp_path / "class/s001", scale=TWO)
    blob = git(clone, "rev-parse", "HEAD:scale.py").strip()
    marks_only = " ".join(str(number % 10) for number in range(50))
    names = [f"{number:06d} {marks_only}.py" for number in range(1500)]
    listed = "".join(f"100644 blob {blob}\t{name}\n" for name in names)
    tree = git(clone, "mktree", given=listed).strip()
    git(clone, "update-ref", "HEAD", git(clone, "commit-tree", tree, "-m", "x").strip())
    before = time.process_time()
    assert batch() == {"s001": "2"}
    assert time.process_time() - before < 10
    assert flags(tmp_path, "s001")[0].startswith("edits are not committed: `scale.py`")


@pytest.mark.slow
def test_no_name_is_so_long_that_a_flag_is_lost(tmp_path: Path, batch: Cli) -> None:
    clone = commit(tmp_path / "class/s001", readme="x = 1\n")
    folder = "/".join("d" * 200 for _ in range(3))
    names = {f"{folder}/scale_{'1' * 200}{number}.py": f"{SIX}{number}\n" for number in range(30)}
    hand_in(clone, names)
    assert batch() == {"s001": "0"}
    assert any("edits are not committed" in flag for flag in flags(tmp_path, "s001"))
    assert any("could not be read: no exercise" in flag for flag in flags(tmp_path, "s001"))


@pytest.mark.slow
def test_a_file_in_a_thousand_places_takes_the_time_of_one(tmp_path: Path, batch: Cli) -> None:
    clone = commit(tmp_path / "class/s001", scale=TWO)
    (tmp_path / "large").write_text("def x  # scale\n" * 500_000)
    blob = git(clone, "hash-object", "-w", str(tmp_path / "large")).strip()
    listed = "".join(f"100644 blob {blob}\t{number:06d}.py\n" for number in range(1000))
    tree = git(clone, "mktree", given=listed).strip()
    git(clone, "update-ref", "HEAD", git(clone, "commit-tree", tree, "-m", "x").strip())
    before = time.process_time()
    assert batch() == {"s001": "2"}
    assert time.process_time() - before < 10  # a look at each of them takes a minute
