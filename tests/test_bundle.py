"""A course in one encrypted file, and a course that lies anywhere."""

from __future__ import annotations

import functools
import http.server
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from classroom import hand_in, waits
from commandline import Cli

from grader.commands.options import SERIAL_VARIABLE
from grader.course import bundle
from grader.course.bundle import (
    KEY_VARIABLE,
    MAGIC,
    NONCE_BYTES,
    SERIAL_BYTES,
    VERSION,
    WITHOUT_SERIAL,
    new_key,
)
from grader.files import zipped

pytestmark = pytest.mark.in_turn

OTHER_KEY = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
TEXT_OF_A_BUNDLE = (b"reference/", b"return x * factor", b"test_hidden", b"PK\x03\x04")


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> str:
    """A key that is in the environment for the next command."""
    made = new_key()
    monkeypatch.setenv(KEY_VARIABLE, made)
    return made


@pytest.fixture
def bundled(cli: Cli, key: str, tiny_copy: Path, tmp_path: Path) -> Path:
    """A bundle of the tiny course, far from the course."""
    file = tmp_path / "elsewhere" / "tiny.bundle"
    file.parent.mkdir()
    said = cli("bundle", "--out", file, "--course", tiny_copy)
    assert said.code == 0, said.err
    assert "encrypted" in said.out
    os.environ[KEY_VARIABLE] = key  # the command has taken it
    return file


# --- the file -------------------------------------------------------------------------------------


def test_a_bundle_shows_nothing_of_the_course(bundled: Path) -> None:
    data = bundled.read_bytes()
    assert data.startswith(MAGIC + VERSION)
    assert [text for text in TEXT_OF_A_BUNDLE if text in data] == []


def test_the_same_course_gives_other_bytes_each_time_and_the_same_course(
    cli: Cli, key: str, bundled: Path, tiny_copy: Path, tmp_path: Path
) -> None:
    assert cli("bundle", "--out", tmp_path / "again", "--course", tiny_copy).code == 0
    first, second = bundled.read_bytes(), (tmp_path / "again").read_bytes()
    assert first != second
    opened = [bundle.unseal(data, bundle.base64.urlsafe_b64decode(key)) for data in (first, second)]
    assert opened[0] == opened[1]


@pytest.mark.parametrize(
    "place", [len(MAGIC + VERSION), 50, len(MAGIC + VERSION) + NONCE_BYTES, -1]
)
def test_a_bundle_of_which_one_bit_is_changed_does_not_open(
    place: int, cli: Cli, bundled: Path, tmp_path: Path
) -> None:
    data = bytearray(bundled.read_bytes())
    data[place] ^= 1
    bundled.write_bytes(data)
    said = cli("check", tmp_path, "--bundle", bundled)
    assert said.code == 2
    assert "does not open: it is damaged, or" in said.err


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("", "is not set"),
        ("too-short", "is no key"),
        ("not base64 at all!", "is no key"),
        (OTHER_KEY, "is another key"),
    ],
)
def test_a_missing_or_wrong_key_is_named(
    value: str, says: str, cli: Cli, bundled: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(KEY_VARIABLE, value)
    said = cli("check", tmp_path, "--bundle", bundled)
    assert (said.code, KEY_VARIABLE in said.err, says in said.err) == (2, True, True)
    assert value not in said.err or not value


def test_a_bundle_of_another_version_is_named(cli: Cli, bundled: Path, tmp_path: Path) -> None:
    bundled.write_bytes(bundled.read_bytes().replace(MAGIC + VERSION, MAGIC + b"9\n"))
    said = cli("check", tmp_path, "--bundle", bundled)
    assert (said.code, "another version" in said.err) == (2, True)


# --- an old one -----------------------------------------------------------------------------------


def bundle_of(cli: Cli, key: str, course: Path, file: Path, *options: object) -> str:
    """Write a bundle, and return its serial as the command prints it."""
    os.environ[KEY_VARIABLE] = key
    said = cli("bundle", "--out", file, "--course", course, *options)
    assert said.code == 0, said.err
    os.environ[KEY_VARIABLE] = key
    return said.out.partition(f"{SERIAL_VARIABLE}=")[2].split()[0]


def test_an_old_bundle_is_refused_where_a_newer_one_is_known(
    cli: Cli, key: str, tiny_copy: Path, tiny_solution: str, tmp_path: Path
) -> None:
    file = tmp_path / "old.bundle"
    assert bundle_of(cli, key, tiny_copy, file, "--serial", 7) == "7"
    hand_in(tmp_path, {"mine/scale.py": tiny_solution})
    check = ("check", tmp_path / "mine", "--bundle", file, "--min-serial")
    said = cli(*check, 8)
    assert said.code == 2
    assert "the bundle is too old: its serial is 7, not 8 or more" in said.err
    assert "grader bundle" in said.err
    os.environ[KEY_VARIABLE] = key
    assert cli(*check, 7).code == 0


def test_the_smallest_serial_can_stand_in_the_environment(
    cli: Cli, key: str, tiny_copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle_of(cli, key, tiny_copy, tmp_path / "old.bundle", "--serial", 7)
    monkeypatch.setenv(SERIAL_VARIABLE, "8")
    batch = ("batch", tmp_path, "--out", tmp_path / "out", "--bundle", tmp_path / "old.bundle")
    said = cli(*batch)
    assert (said.code, "too old" in said.err) == (2, True)
    monkeypatch.setenv(SERIAL_VARIABLE, "eight")  # is not the same as none
    assert cli(*batch).code == 2
    monkeypatch.setenv(SERIAL_VARIABLE, "8")
    assert cli("status", "--course", tiny_copy).code == 0  # a folder has no serial


def test_a_smallest_serial_that_is_set_and_empty_is_refused(
    cli: Cli, bundled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRADER_MIN_SERIAL", "")  # as a variable of CI that nobody has defined
    said = cli("status", "--bundle", bundled)
    assert (said.code, "GRADER_MIN_SERIAL is set but empty" in said.err) == (2, True)


def test_the_serial_of_a_new_bundle_is_larger_than_that_of_an_earlier_one(
    cli: Cli, key: str, tiny_copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serials = []
    for now in (1_767_225_599, 1_767_225_600):  # the last second of a year
        monkeypatch.setattr("time.gmtime", lambda now=now, gmtime=time.gmtime: gmtime(now))
        serials.append(bundle_of(cli, key, tiny_copy, tmp_path / "a.bundle"))
        monkeypatch.undo()
        monkeypatch.setenv(KEY_VARIABLE, key)
    assert serials == ["20251231235959", "20260101000000"]


def test_nobody_without_the_key_gives_an_old_bundle_a_newer_serial(
    cli: Cli, key: str, tiny_copy: Path, tmp_path: Path
) -> None:
    file = tmp_path / "old.bundle"
    bundle_of(cli, key, tiny_copy, file, "--serial", 7)
    head, data = len(MAGIC + VERSION), file.read_bytes()
    newer = data[:head] + (9).to_bytes(SERIAL_BYTES) + data[head + SERIAL_BYTES :]
    first_version = MAGIC + WITHOUT_SERIAL + data[head + SERIAL_BYTES :]
    for forged in (newer, first_version):
        file.write_bytes(forged)
        os.environ[KEY_VARIABLE] = key
        said = cli("check", tmp_path, "--bundle", file)
        assert (said.code, "does not open" in said.err) == (2, True)


def test_a_bundle_of_the_version_without_serials_opens_unless_a_serial_is_asked_for(
    cli: Cli, key: str, bundled: Path, tiny_solution: str, tmp_path: Path
) -> None:
    raw = bundle.base64.urlsafe_b64decode(key)
    content = bundle.unseal(bundled.read_bytes(), raw)
    head, nonce = MAGIC + WITHOUT_SERIAL, bytes(NONCE_BYTES)
    bundled.write_bytes(head + nonce + bundle._cipher(raw).encrypt(nonce, content, head))
    hand_in(tmp_path, {"mine/scale.py": tiny_solution})
    assert cli("check", tmp_path / "mine", "--bundle", bundled).code == 0
    os.environ[KEY_VARIABLE] = key
    said = cli("check", tmp_path / "mine", "--bundle", bundled, "--min-serial", 1)
    assert (said.code, "its serial is 0, not 1 or more" in said.err) == (2, True)


def test_a_smallest_serial_for_what_has_none_is_refused(cli: Cli, tiny_copy: Path) -> None:
    said = cli("check", "--course", tiny_copy, "--min-serial", 7)
    assert (said.code, "only a bundle has a serial" in said.err) == (2, True)


# --- keys -----------------------------------------------------------------------------------------


def test_new_keys_differ_and_nothing_is_written(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # where there is no course
    first, second = (cli("bundle", "--new-key").out for _ in range(2))
    assert len(first) == len(second) > 40
    assert first != second
    assert not Path("course.bundle").exists()


def test_without_the_package_for_it_the_command_says_what_to_install(
    cli: Cli, key: str, bundled: Path, tiny_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers.aead", None)
    monkeypatch.setitem(sys.modules, "cryptography.exceptions", None)
    for options in (("bundle",), ("check", tiny_copy, "--bundle", bundled)):
        monkeypatch.setenv(KEY_VARIABLE, key)  # a command takes it out of the environment
        said = cli(*options, *([] if "--bundle" in options else ["--course", tiny_copy]))
        assert said.code == 2
        assert "pip install 'cryptography>=" in said.err


@pytest.mark.parametrize("kind", ["zip", "folder", "bundle with --course"])
def test_what_a_student_puts_in_the_place_of_a_bundle_is_not_opened(
    kind: str, cli: Cli, bundled: Path, tiny_copy: Path, tmp_path: Path
) -> None:
    mine = tmp_path / "mine"
    if kind == "zip":
        shutil.make_archive(str(mine), "zip", tiny_copy)
        mine = mine.with_suffix(".zip")
    elif kind == "folder":
        shutil.copytree(tiny_copy, mine)
    option = "--bundle"
    if kind == "bundle with --course":
        mine, option = bundled, "--course"
    said = cli("check", tmp_path, option, mine)
    assert said.code == 2
    assert {"zip": "is no bundle", "folder": "directory"}.get(kind, "is a bundle") in said.err


def test_no_course_but_a_bundle_is_loaded_while_the_key_is_there(
    cli: Cli, key: str, tiny_copy: Path, tiny_solution: str, tmp_path: Path
) -> None:
    hand_in(tmp_path, {"mine/scale.py": tiny_solution})
    suite = tiny_copy / "reference/scale/test_hidden.py"
    spying = "import os\nassert 'GRADER_COURSE_KEY' not in os.environ\n"
    spying += f"assert {key!r} not in open('/proc/self/environ').read()\n"
    suite.write_text(spying + suite.read_text().replace("from __future__ import annotations", ""))
    assert cli("check", tmp_path / "mine", "--course", tiny_copy).code == 0


@pytest.mark.parametrize("way", ["environment", "file", "standard input"])
def test_nobody_finds_the_key_in_the_environment_of_the_grader(
    way: str, key: str, bundled: Path, tiny_solution: str, tmp_path: Path
) -> None:
    """Not even where the kernel keeps what a process began with."""
    hand_in(tmp_path, {"mine/scale.py": tiny_solution})
    (tmp_path / "key").write_text(f"{key}\n")
    looks = "import grader.commands.check as c, os, runpy, sys\nrender = c.render\n"
    looks += (
        "def look(*a):\n    print(open(f'/proc/{os.getpid()}/environ').read(), file=sys.stderr)\n"
    )
    looks += "    return render(*a)\nc.render = look\nfrom grader.__main__ import main\nmain()\n"
    options = {"file": ["--key-file", "key"], "standard input": ["--key-file", "-"]}.get(way, [])
    command = [sys.executable, "-c", looks, "check", "mine", "--bundle", str(bundled), *options]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, KEY_VARIABLE: key},
        input=key,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "PATH=" in done.stderr  # it has looked
    assert key not in done.stderr


@pytest.mark.parametrize("content", [None, "", "too-short"])
def test_a_file_without_a_key_is_named_and_not_shown(
    content: str | None, cli: Cli, key: str, bundled: Path, tmp_path: Path
) -> None:
    file = tmp_path / key  # as if the key itself was given
    if content is not None:
        file.write_text(content)
    said = cli("check", tmp_path, "--bundle", bundled, "--key-file", file)
    assert (said.code, "--key-file" in said.err, key in said.err) == (2, True, False)


# --- grading with it ------------------------------------------------------------------------------


def test_a_check_with_a_bundle_says_what_a_check_with_the_course_says(
    cli: Cli, bundled: Path, tiny_copy: Path, tiny_solution: str, tmp_path: Path
) -> None:
    hand_in(tmp_path, {"mine/scale.py": tiny_solution})
    check = ("check", tmp_path / "mine", "--seed", 5)
    by_bundle, by_course = cli(*check, "--bundle", bundled), cli(*check, "--course", tiny_copy)
    assert (by_bundle.code, by_bundle.out) == (0, by_course.out)
    assert "public checks" not in by_bundle.out


@pytest.mark.slow
def test_a_class_is_graded_with_a_bundle_as_with_the_course(
    cli: Cli, key: str, bundled: Path, tiny_copy: Path, tiny_solution: str, tmp_path: Path
) -> None:
    right, wrong = tiny_solution, "def scale(x, factor):\n    return x\n"
    hand_in(tmp_path / "class", {"s001/scale.py": right, "s002/scale.py": wrong})
    both = {}
    for name, place in (("course", tiny_copy), ("bundle", bundled)):
        os.environ[KEY_VARIABLE] = key
        out = tmp_path / name
        batch = ("batch", tmp_path / "class", "--out", out, "--seed", 3)
        assert cli(*batch, f"--{name}", place).code == 1
        both[name] = (out / "grades.csv").read_text()
    assert both["course"] == both["bundle"]


def test_a_bundle_is_not_opened_where_code_is_not_confined(
    cli: Cli, bundled: Path, tmp_path: Path
) -> None:
    hand_in(tmp_path / "class", {"s001/scale.py": "x = 1\n"})
    batch = ("batch", tmp_path / "class", "--out", tmp_path / "out", "--bundle", bundled)
    said = cli(*batch, "--isolation", "process")
    assert said.code == 2
    assert "only on this machine, where student code is confined" in said.err


SPY = """
import glob, os
from pathlib import Path

def found():
    texts = ["\\n".join(f"{name}={value}" for name, value in os.environ.items())]
    places = [f"/proc/{os.getppid()}/environ", ".git/config", "../.git/config"]
    places += glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/cmdline")
    places += glob.glob("/proc/[0-9]*/fd/*")[:2000]
    for root in (*glob.glob("/tmp/grader-*"), PLACE):
        for folder, _, names in os.walk(root):
            places += [os.path.join(folder, name) for name in names][:500]
    for place in places:
        try:
            if os.path.exists(place) and not os.path.isfile(place):
                continue  # a pipe would be waited for
            with open(place, "rb") as file:
                texts.append(file.read(100_000).decode("utf-8", "replace"))
        except OSError:
            pass
    return "\\n".join(texts)

def scale(x, factor):
    raise ValueError(f"{len(found())} characters: " + found())
"""


@pytest.mark.slow
def test_student_code_reads_neither_the_key_nor_the_course_nor_a_token(
    cli: Cli, key: str, bundled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "ghs_the_workflows_own")
    spying = SPY.replace("PLACE", repr(str(tmp_path)))
    hand_in(tmp_path, {"mine/scale.py": spying, "mine/.git/config": "ghs_in_the_checkout"})
    monkeypatch.chdir(tmp_path / "mine")
    alone = [sys.executable, "-c", f"{spying}\nprint(found())"]
    seen = subprocess.run(alone, capture_output=True, check=True, timeout=60).stdout.decode()
    assert all(secret in seen for secret in (key, "ghs_the", "ghs_in", "x * factor"))
    said = cli("check", ".", "--all", "--format", "json", "--bundle", bundled)
    assert said.code == 1, said.err
    assert "characters: " in said.out  # it has looked
    for secret in (key, "ghs_", "x * factor", KEY_VARIABLE):
        assert secret not in said.out


def test_the_opened_course_is_gone_afterwards(
    cli: Cli, bundled: Path, tiny_solution: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    hand_in(tmp_path, {"mine/scale.py": tiny_solution})
    assert cli("check", tmp_path / "mine", "--bundle", bundled).code == 0
    assert KEY_VARIABLE not in os.environ
    assert list(temporary.glob("grader-course-*")) == []


@pytest.mark.slow
@pytest.mark.parametrize("kill", [os.kill, os.killpg])
@pytest.mark.parametrize("command", ["check", "batch"])
def test_the_opened_course_is_gone_after_a_kill_as_well(
    command: str, kill: Callable[[int, int], None], bundled: Path, tmp_path: Path
) -> None:
    """Of the process alone, or of its whole group at once."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    hand_in(tmp_path, {"class/s001/scale.py": "import time\ntime.sleep(60)\n"})
    words = {
        "check": ["check", str(tmp_path / "class/s001")],
        "batch": ["batch", str(tmp_path / "class"), "--out", str(tmp_path / "out"), "--quiet"],
    }
    run = subprocess.Popen(
        [sys.executable, "-m", "grader", *words[command], "--bundle", str(bundled)],
        env=os.environ | {"TMPDIR": str(temporary)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    secret = "grader-course-*/reference/scale/test_hidden.py"
    assert waits(lambda: bool(list(temporary.glob(secret))))
    kill(run.pid, signal.SIGKILL)
    run.wait()
    assert waits(lambda: not list(temporary.glob("grader-course-*")))


# --- a course anywhere ----------------------------------------------------------------------------


@pytest.fixture
def built(cli: Cli, tiny_copy: Path) -> Path:
    """The students' folder of the tiny course."""
    assert cli("build", "--course", tiny_copy).code == 0
    return tiny_copy / "exercises"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    """The address of a folder on a server of this machine."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path))
    handler.log_message = lambda *_: None  # type: ignore[attr-defined]
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_bundle_is_loaded_from_its_address(
    cli: Cli, bundled: Path, served: str, tiny_solution: str, tmp_path: Path
) -> None:
    hand_in(tmp_path, {"mine/scale.py": tiny_solution})
    said = cli(
        "check", tmp_path / "mine", "--bundle", f"{served}/elsewhere/tiny.bundle", "--insecure"
    )
    assert (said.code, "passed" in said.out) == (0, True)


@pytest.mark.parametrize("above", ["", "course-main/"])
def test_the_exercises_of_a_zip_are_taken_from_its_address(
    above: str, cli: Cli, built: Path, served: str, tmp_path: Path
) -> None:
    source = tmp_path / "zipped"
    shutil.copytree(built, source / above / "exercises")
    shutil.make_archive(str(tmp_path / "tiny"), "zip", source)
    said = cli("init", tmp_path / "mine", "--course", f"{served}/tiny.zip", "--insecure")
    assert said.code == 0, said.err
    assert (tmp_path / "mine/exercises/scale.py").is_file()


def test_the_exercises_of_an_installed_package_are_taken_by_its_name(
    cli: Cli, built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site" / "tiny_course"
    shutil.copytree(built, package / "exercises")
    (package / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(package.parent))
    assert cli("init", tmp_path / "mine", "--course", "tiny-course").code == 0
    assert (tmp_path / "mine/exercises/scale.py").is_file()


@pytest.mark.parametrize(
    ("place", "says"),
    [
        ("no_such_package", "there is no course at no_such_package"),
        ("https://127.0.0.1:9/course.zip", "cannot be loaded"),
        ("plain.txt", "the zip of the course cannot be read"),
        ("damaged.zip", "the zip of the course cannot be read"),
        ("https://127.0.0.1:9/my course.zip", "my course.zip cannot be loaded"),
        ("empty.zip", "there is no course in the zip"),
    ],
)
def test_a_place_without_a_course_is_named(
    place: str, says: str, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plain.txt").write_text("no zip")
    name = "reference/course.toml"
    whole = zipped({name: b"title = 'T'\n" * 99})
    start = whole.index(name.encode()) + len(name)
    damaged = whole[:start] + bytes(byte ^ 255 for byte in whole[start : start + 9])
    (tmp_path / "damaged.zip").write_bytes(damaged + whole[start + 9 :])
    (tmp_path / "inside").mkdir()
    shutil.make_archive(str(tmp_path / "empty"), "zip", tmp_path / "inside")
    said = cli("init", "mine", "--course", place)
    assert (said.code, says in said.err) == (2, True), said.err
