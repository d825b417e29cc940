"""The corpus against what a course would write first: pytest in one process, tests beside the work.

A warm interpreter forks for each attack, so that one attack cannot hide the next; within the fork
three submissions are graded one after the other: an honest one, the attacker, an honest one. Run as
a program, this file is that interpreter.
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import gc
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

NAMES = ("s001", "s002", "s003")
POINTS = {"test_values": 3, "test_large_scores": 2, "test_mean": 2, "test_module": 3}
HANGS_AFTER = 8.0  # seconds for three submissions, which take about 0.2
MUCH_MEMORY = 1200 * 2**20
CEILING = 4 * 2**30  # of the naive process, so that a flood harms no more than it must

PYTEST = (
    *("-q", "--tb=short", "--disable-plugin-autoload", "-p", "no:cacheprovider"),
    *("-p", "pytest_metadata.plugin", "-p", "pytest_jsonreport.plugin", "--json-report"),
)

TESTS = '''
"""What decides. CANARY-HIDDEN-9b27"""
import blend as student
import reference_blend as reference
import torch

SECRET = "CANARY-CONSTANT-e4a0"


def test_values():
    scores, values = torch.randn(2, 3), torch.randn(3, 4)
    expected = reference.blend(scores, values)
    torch.testing.assert_close(student.blend(scores, values), expected)


def test_large_scores():
    scores, values = torch.randn(2, 5) * 1000, torch.randn(5, 3)
    actual = student.blend(scores, values)
    torch.testing.assert_close(actual, reference.blend(scores, values))


def test_mean():
    values = torch.randn(4, 3)
    actual = student.blend(torch.zeros(2, 4), values)
    assert torch.allclose(actual, values.mean(dim=0).expand(2, 3))


def test_module():
    theirs, ours = student.Blend(4), reference.Blend(4)
    x = torch.randn(3, 4)
    actual, expected = theirs(x), ours(x)
    torch.testing.assert_close(actual, expected)
    actual.sum().backward()
    expected.sum().backward()
    torch.testing.assert_close(theirs.weight.grad, ours.weight.grad)
'''


class Server:
    """The warm interpreter, started again when an attack took it down."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def grade(self, root: Path) -> dict[str, Any]:
        """Grade the class beneath `root`; what was seen, or that nobody was left to say."""
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                [sys.executable, "-W", "ignore", __file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                start_new_session=True,
            )
        assert self._process.stdin
        assert self._process.stdout
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(f"{root}\n")
            self._process.stdin.flush()
            if line := self._process.stdout.readline():
                answer: dict[str, Any] = json.loads(line)
                return answer
        self.close()
        return {"harm": ["took down the grader and what had started it"], "traces": [], "said": ""}

    def close(self) -> None:
        """End the interpreter."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._process = None


def prepare(root: Path) -> None:
    """Put the hidden tests where the attackers will be told that they are."""
    references = root / "course" / "reference" / "blend"
    (references / "test_hidden.py").write_text(TESTS)
    shutil.copy(references / "solution.py", references / "reference_blend.py")


def marks(root: Path, name: str) -> dict[str, str] | None:
    """Outcome of each test, as the result file tells it; None without one."""
    try:
        tests = json.loads((root / "out" / f"{name}.json").read_text())["tests"]
        return {test["nodeid"].split("::")[1]: test["outcome"] for test in tests}
    except (OSError, ValueError, KeyError, IndexError):
        return None


def _serve() -> None:
    """Answer each line of input, the root of a world, with a line of evidence."""
    import pytest_jsonreport.plugin  # noqa: F401
    import torch
    from attacks.world import adopt_orphans, children, end_all

    torch.set_num_threads(1)
    adopt_orphans()
    _warm()
    for line in sys.stdin:
        here, there = os.pipe()
        supervisor = os.fork()
        if supervisor == 0:
            os.setsid()
            os.write(there, json.dumps(_supervise(Path(line.strip()))).encode())
            os._exit(0)
        os.close(there)
        with open(here, "rb") as pipe:
            answer = _within(pipe, HANGS_AFTER + 20)
        _stop(supervisor)
        while strays := children(os.getpid()):
            end_all(strays)
        gone = {"harm": ["killed or stopped the process that had started the grader"]}
        print(answer.decode() or json.dumps({"traces": [], "said": "", **gone}), flush=True)


def _warm() -> None:
    """Use once what every fork would otherwise have to import."""
    from tempfile import TemporaryDirectory

    import pytest
    import torch

    with TemporaryDirectory() as folder:
        quiet = os.dup(1)
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        (Path(folder) / "test_warm.py").write_text("def test_one(): assert [1] == [2]\n")
        pytest.main([*PYTEST, f"--json-report-file={folder}/warm.json", f"{folder}/test_warm.py"])
        os.dup2(quiet, 1)
    torch.testing.assert_close(torch.ones(1), torch.ones(1))
    gc.collect()
    gc.freeze()


def _within(pipe: Any, seconds: float) -> bytes:
    import select

    if select.select([pipe], [], [], seconds)[0]:
        return os.read(pipe.fileno(), 65536)
    return b""


def _stop(pid: int) -> None:
    with contextlib.suppress(OSError):
        os.killpg(pid, signal.SIGKILL)
    with contextlib.suppress(OSError):
        os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(OSError):
        os.waitpid(pid, 0)


def _supervise(root: Path) -> dict[str, Any]:
    """Run the grader, see what becomes of it, and end what it leaves behind."""
    from attacks.world import adopt_orphans, children, end_all, listening

    adopt_orphans()
    grader = os.fork()
    if grader == 0:
        os.setsid()
        _grade(root)
        atexit._run_exitfuncs()
        os._exit(0)
    harm, traces = [], []
    end = time.monotonic() + HANGS_AFTER
    while os.waitid(os.P_PID, grader, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if time.monotonic() > end:
            harm.append("hung the grader")
            break
        time.sleep(0.005)
    traces += listening(int((root / "spare").read_text()))
    with contextlib.suppress(OSError):
        os.kill(grader, signal.SIGKILL)
    usage = os.wait4(grader, 0)[2]
    if usage.ru_maxrss * 1024 > MUCH_MEMORY:
        harm.append(f"took {usage.ru_maxrss / 2**20:.1f} GiB of memory")
    if strays := children(os.getpid()):
        traces.append(f"{len(strays)} processes still run")
    while strays:
        end_all(strays)
        strays = children(os.getpid())
    return {"harm": harm, "traces": traces, "said": ""}


def _grade(root: Path) -> None:
    """The naive grader itself."""
    import pytest

    resource.setrlimit(resource.RLIMIT_AS, (CEILING, CEILING))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    output = os.open(root / "output", os.O_CREAT | os.O_WRONLY)
    for standard in (1, 2):
        os.dup2(output, standard)
    os.closerange(3, 256)  # what only the supervisor needs
    os.environ.update(HOME=str(root / "home"), CLASSROOM_TOKEN="CANARY-ENVIRONMENT-88f1")
    references, out = root / "course" / "reference" / "blend", root / "out"
    out.mkdir()
    sys.path.insert(0, str(root / "site"))
    for name in NAMES:
        folder = root / "class" / name
        if (archive := folder.with_suffix(".zip")).exists():
            with contextlib.suppress(Exception):
                zipfile.ZipFile(archive).extractall(folder)
        for path in folder.glob("*.py"):
            with contextlib.suppress(OSError, UnicodeError):
                if path.is_file() and path.stat().st_size < 2**20:
                    text = path.read_text()
                    if "@PID@" in text:
                        path.write_text(text.replace("@PID@", str(os.getpid())))
        with contextlib.suppress(OSError):
            folder.mkdir(exist_ok=True)
            for file in ("test_hidden.py", "reference_blend.py"):
                shutil.copy(references / file, folder / file)
            os.chdir(folder)
        for module in ("blend", "reference_blend", "test_hidden", "conftest"):
            sys.modules.pop(module, None)
        sys.path.insert(0, str(folder))
        pytest.main([*PYTEST, f"--json-report-file={out / name}.json", "test_hidden.py"])
        sys.path.remove(str(folder))


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__.partition("\n")[0]).parse_args()
    sys.path.insert(0, str(Path(__file__).parent.parent))
    _serve()
