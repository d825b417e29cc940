"""Temporary folders do not stay, and nothing of anybody else's is touched."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from classroom import waits

from grader import scratch
from grader.scratch import ScratchFolder, scratch_folder

OURS = "grader-unpacked-0123456789abcdef"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for temporary files in which nothing was looked for yet."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    tmp_path.chmod(0o755)
    yield tmp_path
    tmp_path.chmod(0o755)


def leftover(place: Path, name: str = OURS) -> Path:
    """A folder as a process that was killed leaves it."""
    folder = place / name
    (folder / "within").mkdir(parents=True)
    (folder / "within" / "file").touch()
    return folder


def start(place: Path) -> None:
    """Do what a new process does first."""
    scratch._remove_leftovers.cache_clear()
    with scratch_folder("test"):
        pass


def test_a_folder_is_for_its_user_alone_and_removed_with_all_that_is_in_it(place: Path) -> None:
    with scratch_folder("test") as folder:
        assert folder.parent == place
        assert folder.stat().st_mode & 0o777 == 0o700
        (folder / "closed").mkdir()
        (folder / "closed" / "file").touch()
        (folder / "closed").chmod(0)
    assert not list(place.iterdir())


def test_removing_a_folder_that_is_gone_leaves_the_one_above_as_it_was(place: Path) -> None:
    folder = ScratchFolder("test")
    shutil.rmtree(folder.path)
    place.chmod(0o711)
    folder.close()
    assert place.stat().st_mode & 0o777 == 0o711


def test_the_mode_of_the_folder_above_stays_when_nothing_can_be_removed(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = ScratchFolder("test")
    place.chmod(0o511)

    def refuse(path: object, *more: object, **names: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    with monkeypatch.context() as patched:
        for name in ("rmdir", "unlink"):
            patched.setattr(os, name, refuse)
        (folder.path / "file").touch()
        folder.close()  # is no crash
    assert place.stat().st_mode & 0o777 == 0o511
    assert (folder.path / "file").exists()


def test_a_link_to_elsewhere_is_removed_and_not_followed(place: Path) -> None:
    elsewhere = leftover(place, "elsewhere")
    elsewhere.chmod(0o755)
    with scratch_folder("test") as folder:
        (folder / "link").symlink_to(elsewhere)
    assert (elsewhere / "within" / "file").exists()
    assert elsewhere.stat().st_mode & 0o777 == 0o755


def test_what_a_dead_run_left_goes_at_the_next_start(place: Path) -> None:
    code = (
        "import os, signal\nfrom grader.scratch import ScratchFolder\n"
        "folder = ScratchFolder('test').path\n(folder / 'closed').mkdir()\n"
        "(folder / 'closed' / 'file').touch()\n(folder / 'closed').chmod(0)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    environment = os.environ | {"TMPDIR": str(place)}
    ended = subprocess.run([sys.executable, "-c", code], env=environment, check=False)
    assert ended.returncode == -signal.SIGKILL
    assert len(list(place.glob("grader-test-*/closed"))) == 1
    start(place)
    assert not list(place.iterdir())


def test_what_a_living_run_owns_stays(place: Path) -> None:
    mine = ScratchFolder("test")
    start(place)
    assert mine.path.is_dir()
    mine.close()
    assert not list(place.iterdir())


def test_a_folder_whose_owner_has_not_locked_it_yet_stays_for_a_while(place: Path) -> None:
    new = leftover(place, "grader-new-0123456789abcdef")
    start(place)
    assert new.is_dir()
    before = time.time() - 2 * scratch._NEW_SECONDS
    os.utime(new, (before, before))
    start(place)
    assert not new.exists()


@pytest.mark.parametrize(
    "name",
    ["other-unpacked-0123456789abcdef", "grader-unpacked", "grader-a-0123456789abcdef0", "grader-"],
)
def test_folders_with_other_names_stay(place: Path, name: str) -> None:
    other = leftover(place, name)
    start(place)
    assert (other / "within" / "file").exists()


def test_what_belongs_to_another_user_stays(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = leftover(place)
    me = os.geteuid()
    with monkeypatch.context() as patched:
        patched.setattr(os, "geteuid", lambda: me + 1)
        start(place)
    assert (folder / "within" / "file").exists()
    start(place)
    assert not folder.exists()


def test_a_link_or_a_file_with_the_name_of_a_leftover_stays(place: Path) -> None:
    elsewhere = leftover(place, "elsewhere")
    (place / OURS).symlink_to(elsewhere)
    (place / OURS.replace("0", "f")).touch()
    start(place)
    assert (elsewhere / "within" / "file").exists()
    assert len(list(place.iterdir())) == 3


def test_a_leftover_that_cannot_be_removed_is_no_crash(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = leftover(place)

    def refuse(*arguments: object, **names: object) -> None:
        raise OSError(16, "Device or resource busy")

    with monkeypatch.context() as patched:
        for name in ("rmdir", "unlink"):
            patched.setattr(os, name, refuse)
        start(place)
    assert (folder / "within" / "file").exists()
    start(place)
    assert not folder.exists()


# --- what is killed -------------------------------------------------------------------------------

OWNER = """
import os, signal, sys, time
from grader.scratch import ScratchFolder
folder = ScratchFolder('test', outlived=True).path
(folder / 'closed').mkdir()
(folder / 'closed' / 'test_hidden.py').write_text('secret')
(folder / 'closed').chmod(0)
print(folder, flush=True)
time.sleep(60)
"""


def owner_of_a_secret(place: Path, code: str = OWNER) -> tuple[subprocess.Popen[str], Path]:
    """Start a process in a group of its own that keeps a secret in a temporary folder."""
    owner = subprocess.Popen(
        [sys.executable, "-c", code],
        env=os.environ | {"TMPDIR": str(place)},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert owner.stdout is not None
    return owner, Path(owner.stdout.readline().strip())


@pytest.mark.parametrize("kill", [os.kill, os.killpg])
def test_a_secret_goes_at_once_after_its_owner_or_its_whole_group_is_killed(
    kill: Callable[[int, int], None], place: Path
) -> None:
    owner, folder = owner_of_a_secret(place)
    assert folder.parent == place
    assert folder.is_dir()
    kill(owner.pid, signal.SIGKILL)
    owner.wait()
    assert waits(lambda: not list(place.iterdir()))


def test_a_secret_goes_after_its_owner_is_killed_before_anything_else_could_run(
    place: Path,
) -> None:
    kills_itself = "os.kill(os.getpid(), signal.SIGKILL)\n"
    owner, _ = owner_of_a_secret(place, OWNER.replace("time.sleep(60)\n", kills_itself))
    assert owner.wait() == -signal.SIGKILL
    assert waits(lambda: not list(place.iterdir()))


def test_a_secret_stays_while_its_owner_lives_and_nobody_waits_for_it_afterwards(
    place: Path,
) -> None:
    mine = ScratchFolder("test", outlived=True)
    remover = mine._remover
    assert remover is not None
    time.sleep(0.3)  # in which it could do harm
    assert mine.path.is_dir()
    mine.close()
    assert remover.returncode is not None
    assert not list(place.iterdir())


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_what_removes_a_secret_has_nothing_of_its_owner(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRADER_COURSE_KEY", "secret")
    mine = ScratchFolder("test", outlived=True)
    assert mine._remover is not None
    process = Path(f"/proc/{mine._remover.pid}")
    assert waits(lambda: b"scratch.py" in (process / "cmdline").read_bytes())
    assert b"secret" not in (process / "environ").read_bytes()
    assert os.getsid(mine._remover.pid) == mine._remover.pid
    mine.close()
