"""Workers and readers that are spawned, as on Windows and macOS, where none can be forked."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import nbformat
import pytest
from classroom import running, waits
from commandline import Cli
from students_day import Said, spend

from grader.commands import MODULES, NEED_UNIX
from grader.commands.standby_process import CheckOrder
from grader.course.course import Course
from grader.errors import InternalError
from grader.processes.child import clean_environment
from grader.sandbox import control
from grader.sandbox.confinement.limits import Confinement
from grader.sandbox.host import spawning, starting
from grader.sandbox.host.spawned_workers import SpawnedWorkers
from grader.sandbox.host.spawning import SpawnedProcess
from grader.sandbox.invitation import LOOPBACK, TOKEN_BYTES

pytestmark = pytest.mark.in_turn

AS_WINDOWS = Path(__file__).parent / "as_windows.py"
SAME_WORK = ("layer_norm", "masked_softmax", "feed_forward")
Running = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def work(tmp_path: Path, course: Course) -> Path:
    """A students' copy with three exercises: right, with a known mistake, ending in a call."""
    shutil.copytree(course.student_folder, tmp_path / "exercises")
    solution = course["layer_norm"].read("solution.py")
    (tmp_path / "exercises/layer_norm.py").write_text(solution)
    wrong = course["masked_softmax"].read("solution.py").replace("dim=-1", "dim=0")
    (tmp_path / "exercises/masked_softmax.py").write_text(wrong)
    solution = course["feed_forward"].read("solution.py")
    first = "hidden = torch.relu"  # each exit costs a new worker, so there are few
    ends = f"if x.dim() == 4: __import__('os')._exit(3)\n        {first}"
    (tmp_path / "exercises/feed_forward.py").write_text(solution.replace(first, ends))
    return tmp_path


def grader(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `grader` in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "grader", *arguments],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def without_locks(folder: Path) -> dict[str, str]:
    """Return the environment of a grader whose folders no other grader takes for leftovers."""
    temporary = folder / ".temporary"
    temporary.mkdir(exist_ok=True)
    return {**os.environ, "TMPDIR": str(temporary)}


def on_windows(folder: Path, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    """Run `grader` without what Windows does not have, with `given` to read."""
    return subprocess.run(
        [sys.executable, str(AS_WINDOWS), *arguments],
        cwd=folder,
        input=given,
        env=without_locks(folder),
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_a_spawned_worker_gives_the_same_report_as_a_forked_one(work: Path) -> None:
    check = ("check", *SAME_WORK, "--format", "json", "--seed", "5", "--workers")
    forked, spawned = (grader(work, *check, method) for method in starting.METHODS)
    assert json.loads(forked.stdout) == json.loads(spawned.stdout)
    assert forked.returncode == spawned.returncode == 1


@pytest.mark.slow
def test_a_students_day_needs_nothing_that_windows_lacks(tmp_path: Path) -> None:
    def without(*arguments: str, at: Path) -> Said:
        run = on_windows(at, *arguments)
        return Said(run.returncode, run.stdout)

    spend(tmp_path, without)


def test_a_file_with_the_line_ends_of_windows_is_as_good(cli: Cli, work: Path) -> None:
    file = work / "exercises/layer_norm.py"
    file.write_text(file.read_text(), newline="\r\n")
    assert cli("check", file, "layer_norm", "--course", work).code == 0


@pytest.mark.slow
def test_a_notebook_and_a_zip_are_read_without_what_windows_lacks(
    work: Path, course: Course
) -> None:
    cell = nbformat.v4.new_code_cell(course["layer_norm"].read("solution.py"))
    (work / "in").mkdir()
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("%time 1"), cell])
    nbformat.write(notebook, work / "in/layer_norm.ipynb")
    assert "8 / 8" in on_windows(work, "check", "in/layer_norm.ipynb").stdout
    page = work / "report.html"
    order = CheckOrder(str(work), str(work / "in" / "notebook.ipynb"), "layer_norm", str(page))
    ordered = on_windows(work, "standby", given=f"{msgspec.json.encode(order).decode()}\n")
    assert "8 / 8" in ordered.stdout
    assert "layer_norm" in page.read_text("utf-8")
    shutil.make_archive(str(work / "handed_in"), "zip", work / "exercises")
    assert "8 / 8" in on_windows(work, "check", "handed_in.zip", "layer_norm").stdout


IMPORTS = """
import as_windows, builtins, importlib, sys
builtins.__import__ = as_windows.as_on_windows(builtins.__import__)
for name in sys.argv[1:]:
    importlib.import_module(name)
"""


@pytest.mark.slow
def test_all_that_students_and_authors_use_is_imported_without_what_windows_lacks() -> None:
    modules = {module for name, module in MODULES.items() if name not in NEED_UNIX}
    used = ["grader", "grader.__main__", "grader.jupyter", "grader.testing", "grader.authors"]
    used += ["grader.attention_cases", "grader.grading.plugin", "grader.commands.standby"]
    names = [*used, *(f"grader.commands.{module}" for module in sorted(modules))]
    command = [sys.executable, "-W", "ignore", "-c", IMPORTS, *names]
    done = subprocess.run(
        command, cwd=AS_WINDOWS.parent, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("command", sorted(NEED_UNIX))
def test_a_command_that_windows_cannot_run_says_where_it_runs(command: str, tmp_path: Path) -> None:
    said = on_windows(tmp_path, command)
    assert said.returncode == 2
    assert f"`grader {command}` does not run on Windows itself" in said.stderr
    assert "wsl" in said.stderr


@pytest.mark.slow
def test_watching_spawns_the_next_worker_ahead(work: Path, course: Course) -> None:
    command = [sys.executable, str(AS_WINDOWS), "check", "--watch", "--manual", "layer_norm"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, cwd=work, env=without_locks(work), text=True, **pipes) as run:
        assert run.stdin is not None
        assert run.stdout is not None
        lines = iter(run.stdout.readline, "")
        assert any("Every exercise here passes" in line for line in lines)
        changed = course["layer_norm"].read("solution.py").replace("return", "return 2 *")
        (work / "exercises/layer_norm.py").write_text(changed)
        run.stdin.write("r\n")
        run.stdin.flush()
        assert any("grader hint layer_norm" in line for line in lines)
        run.stdin.write("q\n")
        run.stdin.flush()
        rest = run.stdout.read()
    assert "0 of 1 exercises" in rest
    assert run.returncode == 1


@pytest.mark.slow
def test_nothing_of_a_spawned_process_stays(
    work: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    temporary = tmp_path_factory.mktemp("temporary")
    grader(work, "check", "feed_forward", GRADER_WORKERS="spawn", TMPDIR=str(temporary))
    assert list(temporary.iterdir()) == []


@pytest.mark.slow
def test_a_spawned_worker_does_not_outlive_its_host() -> None:
    program = (
        "import time\n"
        "from grader.sandbox.host.spawned_workers import SpawnedWorkers\n"
        "from grader.sandbox.host.worker import Worker\n"
        "worker = Worker(SpawnedWorkers())\n"
        "assert worker.layers\n"
        "print(worker.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as host:
        assert host.stdout is not None
        worker = int(host.stdout.readline())
        host.send_signal(signal.SIGKILL)
    assert waits(lambda: not running(worker))


@contextlib.contextmanager
def spawned(module: str) -> Iterator[SpawnedProcess]:
    with contextlib.closing(SpawnedProcess(module, "workers", clean_environment())) as process:
        yield process


def test_only_who_has_the_token_is_taken_for_the_worker() -> None:
    with spawned("grader.submissions.reader_process.spawned") as process:
        port = process._listener.getsockname()[1]
        with socket.create_connection((LOOPBACK, port)) as stranger:
            stranger.sendall(bytes(TOKEN_BYTES))
            with process.meet(30):
                assert stranger.recv(1) == b""


@pytest.mark.parametrize("most", [100, 5])  # that are heard at once
def test_callers_who_say_nothing_do_not_delay_the_worker(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(spawning, "GREETING_SECONDS", 1000.0)
    monkeypatch.setattr(spawning, "MAX_CALLERS", most)
    with spawned("grader.submissions.reader_process.spawned") as process:
        port = process._listener.getsockname()[1]
        with contextlib.ExitStack() as strangers:
            silent = [
                strangers.enter_context(socket.create_connection((LOOPBACK, port)))
                for _ in range(20)
            ]
            silent[3].sendall(b"?")
            with process.meet(60):
                assert {stranger.recv(1) for stranger in silent} == {b""}


def test_a_caller_who_says_nothing_is_sent_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spawning, "GREETING_SECONDS", 0.0)
    with socket.create_server((LOOPBACK, 0)) as listener:
        port = listener.getsockname()[1]
        with (
            spawning.Callers(listener, bytes(TOKEN_BYTES)) as callers,
            socket.create_connection((LOOPBACK, port)) as stranger,
        ):
            for _ in range(2):
                assert callers.greet(0.1) is None
            assert stranger.recv(1) == b""


def test_a_process_that_ends_at_its_start_says_why_at_once() -> None:
    began = time.monotonic()
    with spawned("grader.no_such_module") as process, pytest.raises(EOFError, match="No module"):
        process.meet(30)
    assert time.monotonic() - began < 20


def test_a_worker_that_does_not_start_is_an_error_of_the_grader(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("grader.sandbox.host.spawned_workers.MODULE", "grader.no_such_module")
    with SpawnedWorkers() as source, pytest.raises(InternalError, match="does not start"):
        source.start_worker()


@pytest.mark.slow
def test_a_worker_that_hung_up_and_stays_is_ended() -> None:
    with SpawnedWorkers(Confinement()) as source:
        connection, pid = source.start_worker()
        with connection:
            assert source.reap(pid, 0.0) == control.Ended(1, control.HUNG_UP)
        assert source.reap(pid, 0.0) is None


def test_an_unknown_start_method_is_named(tmp_path: Path) -> None:
    said = grader(tmp_path, "init", "x")
    said = grader(tmp_path / "x", "status", GRADER_WORKERS="thread")
    assert said.returncode == 2
    assert "GRADER_WORKERS is 'thread'" in said.stderr
