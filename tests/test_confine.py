"""Student code can read Python's files, write one folder and compute, and nothing else."""

from __future__ import annotations

import os
import platform
import re
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from grader.errors import StudentFailure
from grader.sandbox import wire
from grader.sandbox.confinement import landlock
from grader.sandbox.confinement.layers import LAYERS, PROCESS
from grader.sandbox.confinement.limits import Confinement
from grader.sandbox.host.connection import Subject, TimeLimits, WorkerConnection
from grader.sandbox.host.proxies import RemoteCode, Student
from grader.sandbox.host.worker import Worker
from grader.sandbox.host.zygote import Zygote

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux confines")
HERE = Path(__file__).parent
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
X86_64 = platform.machine() == "x86_64"
LIMITS = TimeLimits(60, 600)
RunLines = Callable[..., Any]


@pytest.fixture(scope="module")
def confined() -> Iterator[Zygote]:
    with Zygote(Confinement("confined", memory_bytes=512 << 20)) as zygote:
        yield zygote


@pytest.fixture
def do(confined: Zygote) -> Iterator[RunLines]:
    """Run a few lines as a student's code would run, and return their result."""
    connection = WorkerConnection(lambda: Worker(confined))
    connection.begin(1)

    def run_lines(code: str, **values: Any) -> Any:
        lines = "\n".join(f"    {line}" for line in code.strip().splitlines())
        head = f"import ctypes, os, sys, time\nimport torch\ndef action({', '.join(values)}):\n"
        subject = Subject("m", code, {"m": wire.Source("m.py", head + lines)}, LIMITS)
        student: Any = Student(RemoteCode(connection, subject))
        return student.action(*values.values())

    yield run_lines
    connection.close()


@pytest.mark.slow
def test_every_layer_is_applied_and_named(confined: Zygote) -> None:
    worker = Worker(confined)
    assert worker.layers == (PROCESS, *(layer.name for layer in LAYERS))
    worker.close()


# --- files ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_no_file_but_pythons_own_can_be_read(do: RunLines, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("x")
    forbidden = [secret, HERE / "conftest.py", "/etc/passwd", "/proc/self/maps", "/proc/1/environ"]
    for path in map(str, forbidden):
        with pytest.raises(StudentFailure, match="Permission denied"):
            do("return open(path).read()", path=path)
        with pytest.raises(StudentFailure):
            do("return torch.from_file(path, size=1, dtype=torch.uint8)", path=path)
    for folder in ("/", "/tmp", str(tmp_path), str(HERE), "/proc", ".."):
        with pytest.raises(StudentFailure, match="Permission denied"):
            do("return os.listdir(path)", path=folder)
    assert do("import json\nreturn open(json.__file__).read(3)") in ('"""', 'r""')


def test_one_folder_can_be_written_and_is_gone_afterwards(confined: Zygote) -> None:
    connection = WorkerConnection(lambda: Worker(confined))
    connection.begin(1)
    code = (
        "import os, tempfile\n"
        "def write():\n"
        "    with tempfile.NamedTemporaryFile(delete=False) as file: file.write(b'x')\n"
        "    return os.getcwd(), tempfile.gettempdir(), os.path.expanduser('~'), os.listdir()\n"
    )
    subject = Subject("m", "m", {"m": wire.Source("m.py", code)})
    student: Any = Student(RemoteCode(connection, subject))
    private, temporary, home, files = student.write()
    assert private == temporary == home
    assert Path(private).is_relative_to(os.path.realpath(tempfile.gettempdir()))
    assert b"x" in [(Path(private) / file).read_bytes() for file in files]
    assert Path(private).stat().st_mode & 0o077 == 0
    connection.close()
    assert not Path(private).exists()


WRITES = {
    "a new file": "open(path + '/new', 'w')",
    "an old file": "open(path + '/old', 'a')",
    "an old file, cut while it is opened to be read": "os.open(path + '/old', os.O_TRUNC)",
    "an old file, cut while it is opened for nothing": "os.open(path + '/old', os.O_TRUNC | 3)",
    "a file without a name": "os.open('.', os.O_TMPFILE | os.O_RDWR)",
    "a cut": "os.truncate(path + '/old', 0)",
    "a folder": "os.mkdir(path + '/new')",
    "a link": "os.symlink(path, 'link')",
    "a hard link": "os.link(path + '/old', 'link')",
    "a FIFO": "os.mkfifo('fifo')",
    "a socket": "import socket; socket.socket(socket.AF_UNIX).bind('socket')",
    "a device": "os.mknod('null', 0o20666, os.makedev(1, 3))",
    "another name": "os.rename(path + '/old', path + '/new')",
    "a mode": "os.chmod(path + '/old', 0)",
    "an owner": "os.chown(path + '/old', 1, 1)",
    "a time": "os.utime(path + '/old', (0, 0))",
    "an attribute": "os.setxattr(path + '/old', 'user.x', b'x')",
}


@pytest.mark.parametrize("what", WRITES)
def test_nothing_outside_can_be_changed(what: str, do: RunLines, tmp_path: Path) -> None:
    (tmp_path / "old").write_text("as it was")
    before = os.stat(tmp_path / "old")
    site = Path(landlock.__file__).parent
    for folder in (tmp_path, site):
        with pytest.raises(StudentFailure) as caught:
            do(WRITES[what], path=str(folder))
        assert caught.value.kind in ("PermissionError", "FileNotFoundError")
    after = os.stat(tmp_path / "old")
    assert (tmp_path / "old").read_text() == "as it was"
    assert (before.st_mode, before.st_uid, before.st_mtime_ns) == (
        *(after.st_mode, after.st_uid, after.st_mtime_ns),
    )


def test_the_python_installation_cannot_be_written(do: RunLines) -> None:
    import msgspec

    place = str(Path(msgspec.__file__).parent / "written-by-a-student")
    with pytest.raises(StudentFailure, match="Permission denied"):
        do("open(path, 'w')", path=place)
    assert not Path(place).exists()


def test_a_removed_file_stays_until_the_worker_ends(do: RunLines, tmp_path: Path) -> None:
    """Removing succeeds in appearance: the quotas could not count an open file without a name."""
    (tmp_path / "old").write_text("x")
    code = "open('mine', 'w').close(); os.unlink('mine'); os.unlink(path + '/old')\n"
    assert do(code + "return os.listdir()", path=str(tmp_path)) == ["mine"]
    assert (tmp_path / "old").exists()
    with pytest.raises(StudentFailure, match="Operation not permitted"):
        do("open('a', 'w').close(); os.rename('a', 'b')")


@pytest.mark.slow
@pytest.mark.parametrize("version", range(1, 8))
def test_an_older_landlock_confines_files_as_well(version: int, tmp_path: Path) -> None:
    if version > landlock.version():
        pytest.skip(f"this kernel has Landlock {landlock.version()}")
    (tmp_path / "private").mkdir()
    (tmp_path / "outside").write_text("x")
    script = (
        "import landlockpy, os, sys\n"
        "from pathlib import Path\n"
        "from landlockpy import _syscall\n"
        f"_syscall.abi_version = lambda: {version}\n"
        "from grader.sandbox.confinement import landlock\n"
        "top = Path(sys.argv[1])\n"
        "landlock.restrict(top / 'private', may_remove=False)\n"
        "(top / 'private' / 'mine').write_text('x')\n"
        "for action in (lambda: (top / 'outside').read_text(),\n"
        "             lambda: (top / 'outside').write_text('y'),\n"
        "             lambda: os.rename(top / 'private' / 'mine', top / 'moved')):\n"
        "    try: action()\n"
        "    except OSError: print('refused')\n"
    )
    said = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert said.stdout.split() == ["refused"] * 3


# --- system calls ---------------------------------------------------------------------------------

# System calls that are refused, with their numbers on x86-64 and aarch64.
NUMBERS = {
    "socket": (41, 198),
    "socketpair": (53, 199),
    "bind": (49, 200),
    "connect": (42, 203),
    "sendmsg": (46, 211),
    "execve": (59, 221),
    "execveat": (322, 281),
    "wait4": (61, 260),
    "kill": (62, 129),
    "tkill": (200, 130),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438),
    "pidfd_send_signal": (424, 424),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "io_uring_setup": (425, 425),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "msgget": (68, 186),
    "semget": (64, 190),
    "mq_open": (240, 180),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "mount": (165, 40),
    "open_tree": (428, 428),
    "fsopen": (430, 430),
    "unshare": (272, 97),
    "setns": (308, 268),
    "chroot": (161, 51),
    "pivot_root": (155, 41),
    "chdir": (80, 49),
    "openat2": (437, 437),
    "pwritev2": (328, 287),
    "fsync": (74, 82),
    "fdatasync": (75, 83),
    "sync": (162, 81),
    "syncfs": (306, 267),
    "sync_file_range": (277, 84),
    "msync": (26, 227),
    "fallocate": (285, 47),
    "copy_file_range": (326, 285),
    "splice": (275, 76),
    "sendfile": (40, 71),
    "open_by_handle_at": (304, 265),
    "inotify_init1": (294, 26),
    "fanotify_init": (300, 262),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "init_module": (175, 105),
    "seccomp": (317, 277),
    "landlock_create_ruleset": (444, 444),
    "setrlimit": (160, 164),
    "setuid": (105, 146),
    "capset": (126, 91),
    "personality": (135, 92),
    "setsid": (112, 157),
    "setpgid": (109, 154),
    "setpriority": (141, 140),
    "sched_setscheduler": (144, 119),
    "reboot": (169, 142),
    "syslog": (103, 116),
    "no such call": (999, 999),
}


def test_system_calls_that_are_not_in_the_list_are_refused(do: RunLines) -> None:
    code = (
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "answers = []\n"
        "for number in numbers:\n"
        "    ctypes.set_errno(0)\n"
        "    answers.append((libc.syscall(number, 0, 0, 0, 0, 0, 0), ctypes.get_errno()))\n"
        "return answers"
    )
    numbers = [pair[0 if X86_64 else 1] for pair in NUMBERS.values()]
    answers = dict(zip(NUMBERS, do(code, numbers=numbers)))
    assert {name: answer for name, answer in answers.items() if answer != (-1, 1)} == {}


REFUSED = {
    "a process by fork": "os.fork()",
    "a process by vfork": "ctypes.CDLL(None, use_errno=True).vfork() < 0 or os._exit(0)\n"
    "raise PermissionError",
    "a program": "os.posix_spawn('/bin/true', ['true'], {})",
    "a shell": "import subprocess; subprocess.run(['true'])",
    "a connection": "import socket; socket.create_connection(('127.0.0.1', PORT))",
    "a socket pair": "import socket; socket.socketpair()",
    "a signal to the parent": "os.kill(os.getppid(), 0)",
    "a signal to itself by kill": "os.kill(os.getpid(), 0)",
    "a signal to its thread": "import signal, threading\n"
    "signal.pthread_kill(threading.get_ident(), signal.SIGTERM)",
    "a signal to its group": "os.killpg(0, 0)",
    "a signal when a descriptor is ready": "import fcntl; fcntl.fcntl(0, fcntl.F_SETOWN, 1)",
    "more memory": "import resource\n"
    "resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)",
    "another's limits": "import resource; resource.prlimit(os.getppid(), resource.RLIMIT_CPU)",
    "to be dumpable": "if ctypes.CDLL(None).prctl(4, 1, 0, 0, 0): raise PermissionError",
    "to outlive its parent": "if ctypes.CDLL(None).prctl(1, 0, 0, 0, 0): raise PermissionError",
    "to take input for a terminal": "import fcntl; fcntl.ioctl(0, 0x5412, b'x')",
    "writes that wait for the disk": "os.open('f', os.O_CREAT | os.O_WRONLY | os.O_SYNC)",
    "writes that wait for the data": "os.open('f', os.O_CREAT | os.O_WRONLY | os.O_DSYNC)",
    "writes past the cache": "os.open('f', os.O_CREAT | os.O_WRONLY | os.O_DIRECT)",
    "writes past the cache later": "import fcntl\n"
    "fcntl.fcntl(os.open('f', os.O_CREAT | os.O_WRONLY), fcntl.F_SETFL, os.O_DIRECT)",
    "to wait for the disk": "os.fsync(os.open('f', os.O_CREAT | os.O_WRONLY))",
    "user namespaces": "if ctypes.CDLL(None).unshare(0x10000000): raise PermissionError",
}


@pytest.mark.parametrize("what", REFUSED)
def test_it_cannot_have(what: str, do: RunLines) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, pytest.raises(StudentFailure) as caught:
        do(REFUSED[what].replace("PORT", str(server.getsockname()[1])))
    assert caught.value.kind in ("PermissionError", "OSError", "ValueError")


@pytest.mark.skipif(not X86_64, reason="other processors have one way to call")
def test_system_calls_in_another_processors_way_are_refused(do: RunLines) -> None:
    libc_call = "return ctypes.CDLL(None).syscall(0x40000000 + 39)"
    assert do(libc_call) == -1
    # int 0x80 in eax=20 (getpid of 32-bit processors): the filter ends the process.
    code = (
        "import mmap\n"
        "page = mmap.mmap(-1, 4096, prot=7)\n"
        "page.write(bytes([0xB8, 20, 0, 0, 0, 0xCD, 0x80, 0xC3]))\n"
        "address = ctypes.addressof(ctypes.c_char.from_buffer(page))\n"
        "return ctypes.CFUNCTYPE(ctypes.c_int)(address)()"
    )
    with pytest.raises(StudentFailure, match=r"crashed|ended the process"):
        do(code)


def test_the_worker_holds_no_descriptor_but_its_connection(do: RunLines) -> None:
    code = (
        "open_ones = []\n"
        "for fd in range(64):\n"
        "    try: os.fstat(fd); open_ones.append(fd)\n"
        "    except OSError: pass\n"
        "return open_ones"
    )
    assert do(code) == [0, 1, 2, 3]


def test_a_worker_has_no_privilege_and_gains_none(confined: Zygote) -> None:
    worker = Worker(confined)
    assert worker.layers
    text = Path(f"/proc/{worker.pid}/status").read_text()
    status = dict(line.split(":\t", 1) for line in text.splitlines())
    worker.close()
    empty = "0" * 16
    assert (status["CapInh"], status["CapPrm"], status["CapEff"]) == (empty, empty, empty)
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")


# --- what must keep working ----------------------------------------------------------------------

WORKS = {
    "two threads in torch": "torch.set_num_threads(2)\n"
    "x = torch.randn(300, 300)\nreturn (x @ x).sum()",
    "threads": "import threading\ndone = []\n"
    "threads = [threading.Thread(target=done.append, args=(n,)) for n in range(8)]\n"
    "[t.start() for t in threads]; [t.join() for t in threads]\nreturn len(done)",
    "autograd": "x = torch.randn(3, requires_grad=True)\n(x ** 2).sum().backward()\nreturn x.grad",
    "convolution": "return torch.nn.Conv2d(3, 8, 3)(torch.randn(2, 3, 9, 9)).sum()",
    "recurrence": "return torch.nn.LSTM(4, 5)(torch.randn(3, 2, 4))[0].sum()",
    "an optimiser": "p = torch.nn.Parameter(torch.randn(4))\n"
    "(p ** 2).sum().backward()\ntorch.optim.Adam([p]).step()\nreturn p.detach()",
    "decompositions": "return torch.linalg.svd(torch.randn(9, 7))[1]",
    "Fourier transforms": "return torch.fft.fft(torch.randn(64)).real",
    "checkpoints": "from torch.utils.checkpoint import checkpoint\n"
    "x = torch.randn(3, requires_grad=True)\n"
    "checkpoint(torch.sin, x, use_reentrant=False).sum().backward()\nreturn x.grad",
    "loaders": "from torch.utils.data import DataLoader, TensorDataset\n"
    "return len(list(DataLoader(TensorDataset(torch.randn(10, 2)), batch_size=4)))",
    "saving and loading": "torch.save({'a': torch.ones(2)}, 'x.pt')\n"
    "return torch.load('x.pt')['a']",
    "temporary files": "import tempfile\n"
    "with tempfile.TemporaryFile() as f: return f.write(b'abc')",
    "generators that seed themselves": "return torch.Generator().seed()",
    "numbers nobody can guess": "import secrets\nreturn len(secrets.token_hex())",
    "the standard library": "import asyncio, csv, decimal, json, sqlite3, ssl, uuid, lzma\n"
    "return len(str(uuid.uuid4()))",
    "a descriptor's flags": "import fcntl\nmine = os.open('f', os.O_CREAT | os.O_RDWR)\n"
    "flags = fcntl.fcntl(mine, fcntl.F_GETFL)\n"
    "fcntl.fcntl(mine, fcntl.F_SETFL, flags | os.O_APPEND)\nreturn os.write(mine, b'abc')",
    "sleep": "time.sleep(0.001)\nreturn time.monotonic()",
}


@pytest.mark.slow
@pytest.mark.parametrize("what", WORKS)
def test_it_can_use(what: str, do: RunLines) -> None:
    assert do(WORKS[what]) is not None


# --- limits ---------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("torch.ones(2**30)", "can't allocate memory"),
        ("hoard = [bytes(2**20) for _ in range(4096)]", "MemoryError|Memory"),
        ("open('big', 'wb').write(bytes(2**25))", "File too large"),
        ("held = []\nwhile True: held.append(os.open(os.devnull, 0))", "Too many open files"),
        (
            "for n in range(9999):\n"
            "    with open(f'f{n}', 'wb') as f: f.write(b'x')\ntime.sleep(50)",
            "more than 256 files",
        ),
        (
            "held = []\n"
            "for n in range(20):\n"
            "    held.append(open(f'f{n}', 'wb'))\n"
            "    os.unlink(f'f{n}')\n"
            "    held[-1].write(bytes(2**22))\n"
            "    held[-1].flush()\ntime.sleep(50)",
            "more than 32 MiB of files",
        ),
        (
            "for n in range(20):\n    open(f'f{n}', 'wb').write(bytes(2**22))\ntime.sleep(50)",
            "more than 32 MiB of files",
        ),
        (
            "while True:\n    for n in range(3):\n"
            "        with open(f'f{n}', 'wb') as f: f.write(bytes(2**23))",
            "wrote its files again and again, 1024 MiB in all",
        ),
        (
            "held = [os.open(f'f{n}', os.O_CREAT | os.O_RDWR) for n in range(3)]\n"
            "while True:\n    for f in held: os.pwrite(f, bytes(2**23), 0)",
            "wrote its files again and again, 1024 MiB in all",
        ),
        (
            "import threading\nthreading.stack_size(65536)\nfor _ in range(200):\n"
            "    threading.Thread(target=time.sleep, args=(50,), daemon=True).start()\n"
            "time.sleep(50)",
            "more than 64 threads",
        ),
    ],
)
def test_too_much_is_refused_with_a_message(code: str, said: str, do: RunLines) -> None:
    with pytest.raises(StudentFailure) as caught:
        do(code)
    assert re.search(said, f"{caught.value.kind}: {caught.value.message}")


def test_a_file_may_be_written_often(do: RunLines) -> None:
    code = (
        "for n in range(300):\n"
        "    with open('log', 'a') as f: f.write(f'step {n}\\n')\n"
        "    time.sleep(0.001)\n"
        "return os.path.getsize('log')"
    )
    assert do(code) == 2590


def test_limits_hold_however_much_is_asked_of_the_zygote(confined: Zygote, do: RunLines) -> None:
    other = Zygote(control=confined.share())  # as that of another grading process
    busy = threading.Event()

    def ask() -> None:
        while not busy.is_set():
            other.reap(2**22, 0.0)  # not the pid of a worker

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        with pytest.raises(StudentFailure, match="more than 256 files"):
            do("for n in range(9999):\n    open(f'f{n}', 'wb').close()\ntime.sleep(50)")
    finally:
        busy.set()
        asking.join()
        other.close()


@pytest.mark.slow
def test_a_worker_may_compute_for_a_limited_time(tmp_path: Path) -> None:
    with Zygote(Confinement(cpu_seconds=1)) as zygote:
        connection = WorkerConnection(lambda: Worker(zygote))
        connection.begin(1)
        source = wire.Source("m.py", "def spin():\n    while True: pass\n")
        subject = Subject("m", "m", {"m": source}, LIMITS)
        student: Any = Student(RemoteCode(connection, subject))
        with pytest.raises(StudentFailure, match="SIGXCPU"):
            student.spin()
        connection.close()
