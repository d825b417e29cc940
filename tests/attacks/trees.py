"""Attacks with names, links and folders: on whoever finds out what was handed in, and by whom."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Sequence
from pathlib import Path

from attacks.corpus import KIT, RIGHT, Fill, Place

Names = Sequence[str]


def _home(folder: Path, name: str, fill: Fill, text: str = KIT) -> Path:
    home = folder / name
    home.mkdir()
    (home / "blend.py").write_text(fill(text))
    return home


def _named(trick: str, says: str, *ends: str, starts: str = "{name}") -> Place:
    """Wrong work in folders of odd names."""

    def place(folder: Path, name: str, fill: Fill) -> Names:
        names = [starts.format(name=name) + end for end in ends]
        for each in names:
            _home(folder, each, fill)
        return names

    place.__name__, place.__doc__ = trick, says
    return place


NAMED = (
    _named("named_for_moodle", "Names: as of Moodle's submissions, twice over.",
           "_123_assignsubmission_file_", "_1_assignsubmission_file_x_2_assignsubmission_file"),
    _named("named_for_gradescope", "Names: as of Gradescope's submissions.", "",
           starts="submission_{name}0"),
    _named("named_for_canvas", "Names: as Canvas names others' files.",
           "_LATE_123_456_blend.py", "late_1_2_blend-2.py"),
    _named("named_for_attempts", "Names: as of a neighbour's other attempts.",
           *(f"s001.attempt-{n}" for n in (1, 2)), "100.attempt-1", "s001.html", "s001.json",
           starts=""),
    _named("named_for_results", "Names: as of folders and pages of the results.",
           "index", "grades", "reports", "grades.csv", "index.html", "results.jsonl",
           "ledger.sqlite", "run.jsonl", "class", starts=""),
    _named("named_for_formulas", "Names: a spreadsheet would compute them.",
           ";=1+1", "\t=1+1", ",=1+1", "\n=1+1", "\r@x", ';"=1+1"', "|=1+1"),
    _named("named_formulas", "Names: beginnings of formulas.",
           "=1+1", "+1", "-1+1", "@x", "\t=1", '"=1', "'=1", ";=1", starts=""),
    _named("named_in_markup", "Names: markup and links.",
           "<script>alert(1)<", "[x](javascript:alert(1))", "&lt;b&gt;", "`x`|x|", "${x}{{x}}"),
    _named("named_in_controls", "Names: controls, also for text direction.",
           "\x1b[2J", "\u202e", "\x7f", "\u2028", "\x00"[:0] + "\x01", "\r"),
    _named("named_alike", "Names: like a neighbour's.",
           "s001 ", "s001.", "S001", "s00\u0661", "s\u0660\u0660\u0661", "s001\u200b", "\uff53001",
           starts=""),
    _named("named_for_devices", "Names: reserved by other systems.",
           "nul", "con", "aux.py", "-rf", "--help", "~", "$HOME", "%PATH%", "*", "?", starts=""),
    _named("named_dots", "Names: nearly `..`.",
           "...", ".. ", " .", ". .", "..\\s001", starts=""),
    _named("named_long", "Names: of the greatest length.",
           "x" * 250, "é" * 125, "x" * 119, "x" * 120),
)  # fmt: skip


def undecodable(folder: Path, name: str, fill: Fill) -> Names:
    """Names: no text."""
    names = [os.fsdecode(name.encode() + end) for end in (b"\xff", b"\xed\xa0\x80", b"\xc3")]
    for each in names:
        _home(folder, each, fill)
    return names


def solution_of_the_class(folder: Path, name: str, fill: Fill) -> Names:
    """A folder with the exercise's name and a solution in it."""
    (folder / "blend").mkdir(exist_ok=True)
    (folder / "blend" / "solution.py").write_text(fill(KIT))
    return ["blend"]


def exercise_of_the_class(folder: Path, name: str, fill: Fill) -> Names:
    """An exercise file at the top of the class."""
    (folder / "blend.py").write_text(fill(KIT))
    (folder / "blend.ipynb").write_text("{}")
    return ["blend.py", "blend.ipynb", "blend"]


def metadata_of_the_class(folder: Path, name: str, fill: Fill) -> Names:
    """A file named as a platform's list of submitters."""
    (folder / "submission_metadata.yml").write_text(
        "s001:\n  :submitters:\n  - :name: Mallory\n    :email: m@example.org\n"
    )
    return ["submission_metadata"]


def metadata(folder: Path, name: str, fill: Fill) -> None:
    """Too much: a list of submitters that grows tenfold with each line."""
    lines = ["a0: &a0 [x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    home = _home(folder, name, fill)
    (home / "submission_metadata.yml").write_text("\n".join(lines))


def hidden_folder(folder: Path, name: str, fill: Fill) -> Names:
    """Names: a dot at the beginning."""
    _home(folder, f".{name}", fill)
    return [f".{name}"]


def linked_parent(folder: Path, name: str, fill: Fill) -> None:
    """Links: to another student's folder."""
    (folder / name).mkdir()
    (folder / name / "work").symlink_to(fill.path("neighbour").parent)


def linked_package(folder: Path, name: str, fill: Fill) -> None:
    """Links: the exercise's folder to the reference's."""
    (folder / name).mkdir()
    (folder / name / "blend").symlink_to(fill.path("references"))


def linked_circle(folder: Path, name: str, fill: Fill) -> None:
    """Links: to itself, upwards and to nowhere."""
    home = folder / name
    home.mkdir()
    for link, target in {
        "a": ".",
        "b": "..",
        "c": "c",
        "d": "/proc/self/fd",
        "blend.py": "blend.py",
    }.items():
        (home / link).symlink_to(target)


def linked_zip(folder: Path, name: str, fill: Fill) -> Names:
    """Links: to a zip outside the class."""
    theirs = fill.path("root") / "linked.zip"
    theirs.write_bytes(b"PK\5\6" + bytes(18))
    (folder / f"{name}.zip").symlink_to(theirs)
    return [f"{name}.zip"]


def pipes(folder: Path, name: str, fill: Fill) -> None:
    """Pipes with every name that somebody may open."""
    home = folder / name
    (home / ".git" / "refs").mkdir(parents=True)
    (home / "blend").mkdir()
    for file in ("blend.ipynb", "a.zip", "blend/solution.py", ".git/HEAD", ".git/config",
                 "submission_metadata.yml", "pyproject.toml"):  # fmt: skip
        os.mkfifo(home / file)


def sockets(folder: Path, name: str, fill: Fill) -> None:
    """A socket named as the work."""
    home = folder / name
    home.mkdir()
    before = os.getcwd()
    os.chdir(home)  # a socket's path must be short
    try:
        with socket.socket(socket.AF_UNIX) as here:
            here.bind("blend.py")
    finally:
        os.chdir(before)


def stray_files(folder: Path, name: str, fill: Fill) -> None:
    """Too much: ten thousand stray files."""
    home = _home(folder, name, fill)
    for number in range(10_000):
        os.mknod(home / f"{number}.py")


def stray_folders(folder: Path, name: str, fill: Fill) -> None:
    """Too much: four levels of nine folders, with zips in each."""
    home = folder / name
    for number in range(9**3):
        place = home / f"{number % 9}" / f"{number // 9 % 9}" / f"{number // 81}"
        place.mkdir(parents=True)
        (place / "a.zip").write_bytes(b"PK\5\6" + bytes(18))


def several_homes(folder: Path, name: str, fill: Fill) -> None:
    """Too much: the work in three hundred folders."""
    for number in range(300):
        (folder / name / f"{number}").mkdir(parents=True)
        (folder / name / f"{number}" / "blend.py").write_text("softmax = 1")


def deep_folders(folder: Path, name: str, fill: Fill) -> None:
    """Too much: folders deeper than a path may be."""
    here = folder / name
    while len(str(here)) < 3_800:
        here /= "d" * 200
    here.mkdir(parents=True)
    (here / "blend.py").write_text(fill(KIT))


def unreadable(folder: Path, name: str, fill: Fill) -> None:
    """Unreadable: the submission."""
    home = _home(folder, name, fill)
    (home / "blend.py").chmod(0)


def unreadable_folder(folder: Path, name: str, fill: Fill) -> None:
    """Unreadable: folders, to be listed or entered."""
    home = folder / name
    for mode in (0o000, 0o444):
        (home / f"{mode:o}").mkdir(parents=True)
        (home / f"{mode:o}" / "blend.py").write_text(fill(KIT))
        (home / f"{mode:o}").chmod(mode)


def folders_for_files(folder: Path, name: str, fill: Fill) -> None:
    """Folders named as a notebook, a zip and a file."""
    for each in ("blend.ipynb", "a.zip", "blend.py", "solution.py"):
        (folder / name / each).mkdir(parents=True)


def clone_of_commands(folder: Path, name: str, fill: Fill) -> None:
    """A clone: its settings run commands."""
    home = _home(folder, name, fill)
    (home / ".git" / "hooks").mkdir(parents=True)
    (home / ".git" / "objects").mkdir()
    (home / ".git" / "refs").mkdir()
    (home / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    command = fill("touch @DROP@/git")
    (home / ".git" / "config").write_text(
        "[core]\n\trepositoryformatversion = 0\n"
        f"\tfsmonitor = {command}\n\tsshCommand = {command}\n"
        f"\tpager = {command}\n\thooksPath = hooks\n[alias]\n\tcat-file = !{command}\n"
        f"[include]\n\tpath = {fill('@HIDDEN@')}\n"
    )
    (home / ".git" / "hooks" / "post-checkout").write_text(f"#!/bin/sh\n{command}\n")
    (home / ".git" / "hooks" / "post-checkout").chmod(0o755)


def clone_of_another(folder: Path, name: str, fill: Fill) -> None:
    """A clone: borrows objects of another repository."""
    home = _home(folder, name, fill)
    (home / ".git").write_text(f"gitdir: {fill('@ROOT@')}/elsewhere\n")


def many_notes(folder: Path, name: str, fill: Fill) -> None:
    """Too much: a hundred files whose long names are markup."""
    home = _home(folder, name, fill)
    for number in range(100):
        (home / f"{number}{'<b>|`[' * 30}.py").write_text("")


def honest_beside(folder: Path, name: str, fill: Fill) -> None:
    """Right work beside everything that systems leave in folders.

    Honest points: 10
    """
    home = _home(folder, name, fill, RIGHT)
    for clutter in (".DS_Store", "Thumbs.db", "__pycache__/blend.pyc", "__MACOSX/._blend.py",
                    ".ipynb_checkpoints/blend-checkpoint.ipynb", ".venv/lib/blend.py"):  # fmt: skip
        (home / clutter).parent.mkdir(exist_ok=True, parents=True)
        (home / clutter).write_bytes(b"\0\xff")


TREES: tuple[Callable[[Path, str, Fill], Names | None], ...] = (
    *NAMED,
    *(undecodable, solution_of_the_class, exercise_of_the_class, metadata_of_the_class, metadata),
    *(hidden_folder, linked_parent, linked_package, linked_circle, linked_zip, pipes, sockets),
    *(stray_files, stray_folders, several_homes, deep_folders, unreadable, unreadable_folder),
    *(folders_for_files, clone_of_commands, clone_of_another, many_notes, honest_beside),
)
