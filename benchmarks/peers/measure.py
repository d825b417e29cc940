"""What a command and everything that it starts take: wall time, CPU time, memory. Linux only."""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

HERTZ = 10  # looks at the tree in a second
TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
QUIET = 0.05  # of the cores, taken by others: less does not change a time
PATIENCE = 10.0  # seconds that a process may live on after the command that started it
PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True)
class Look:
    """One look at all processes that this one has started: bytes, and what else was counted."""

    when: float
    memory: int
    done: int


@dataclass(frozen=True)
class Usage:
    """What a command took, with everything that it started: seconds, seconds of CPU, bytes.

    `others` are the CPU seconds that everything else on the machine took meanwhile.
    """

    wall: float
    cpu: float
    others: float
    looks: tuple[Look, ...]

    @property
    def peak(self) -> int:
        """The most memory that a look found."""
        return max((look.memory for look in self.looks), default=0)


class Sampler(threading.Thread):
    """Looks at the tree of processes below this one, several times a second.

    Memory is the sum of proportional set sizes: what processes share is counted once. Who is in
    `before`, such as a cluster that is up already, has memory that counts, and CPU that does not.
    """

    def __init__(self, count: Callable[[], int], before: Collection[int]) -> None:
        super().__init__(daemon=True)
        self.looks: list[Look] = []
        self._count, self._before = count, before
        self._ended = threading.Event()
        self._ticks: dict[int, int] = {}

    @property
    def cpu(self) -> float:
        """CPU seconds of all processes seen, at the last look at each."""
        return sum(self._ticks.values()) / TICKS

    def run(self) -> None:
        """Look until told to end."""
        while not self._ended.wait(1 / HERTZ):
            found = processes()
            self._ticks |= descendants(found, besides=self._before)
            memory = sum(map(memory_of, descendants(found)))
            self.looks.append(Look(time.perf_counter(), memory, self._count()))

    def end(self) -> None:
        """Stop looking."""
        self._ended.set()
        self.join()


def measured(
    command: Sequence[str | Path],
    *,
    cwd: Path,
    log: Path,
    env: Mapping[str, str] | None = None,
    fine: Sequence[int] = (0,),
    count: Callable[[], int] = lambda: 0,
) -> Usage:
    """Run a command that ends with one of the codes `fine`; its output goes to `log`.

    `count` is asked at every look for how much is done.
    """
    adopt_orphans()
    before = set(children())
    sampler = Sampler(count, before)
    sampler.start()
    start, busy, own = time.perf_counter(), busy_seconds(), time.process_time()
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    cpu = usage.ru_utime + usage.ru_stime + cpu_of_orphans(before)
    others = max(0.0, busy_seconds() - busy - cpu - (time.process_time() - own))
    sampler.end()
    if process.returncode not in fine:
        tail = log.read_text("utf-8", "replace")[-2000:]
        raise SystemExit(f"{' '.join(map(str, command))} gave {process.returncode}\n{tail}")
    if cpu < 0.9 * sampler.cpu:  # somebody did not wait for a process of theirs
        raise SystemExit(f"{command[0]}: {sampler.cpu:.1f} s of CPU seen, {cpu:.1f} s counted")
    return Usage(wall, cpu, others, tuple(sampler.looks))


def adopt_orphans() -> None:
    """Have processes whose parent has ended become children of this one, to be counted."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def cpu_of_orphans(before: set[int]) -> float:
    """CPU seconds of the children that were not there before; whoever lingers is killed."""
    total, limit = 0.0, time.monotonic() + PATIENCE
    while left := set(children()) - before:
        for pid in left:
            if time.monotonic() > limit:
                os.kill(pid, signal.SIGKILL)
            found, _, usage = os.wait4(pid, os.WNOHANG)
            if found:
                total += usage.ru_utime + usage.ru_stime
        time.sleep(0.02)
    return total


# --- /proc ---------------------------------------------------------------------------------------


def processes() -> dict[int, tuple[int, int]]:
    """Every process: its parent, and its ticks of CPU."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                fields = Path(f"/proc/{name}/stat").read_text("utf-8", "replace")
            except OSError:  # it has just ended
                continue
            rest = fields.rpartition(")")[2].split()
            found[int(name)] = int(rest[1]), int(rest[11]) + int(rest[12])
    return found


def children() -> list[int]:
    """The processes that this one is the parent of."""
    return [pid for pid, (parent, _) in processes().items() if parent == os.getpid()]


def descendants(
    found: Mapping[int, tuple[int, int]], besides: Collection[int] = ()
) -> dict[int, int]:
    """Those of the processes `found` that are below this one, and their ticks of CPU."""
    below: dict[int, int] = {}
    level = {os.getpid()}
    while level:
        level = {pid for pid, (parent, _) in found.items() if parent in level} - set(besides)
        below |= {pid: found[pid][1] for pid in level}
    return below


def memory_of(pid: int) -> int:
    """A process's proportional set size in bytes; if that is not ours to read, what is its own."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text("ascii").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except PermissionError:  # a confined worker, unless root asks
        return _own_memory(pid)
    except OSError:
        pass
    return 0


def _own_memory(pid: int) -> int:
    """Resident pages that map no file; an upper bound, for forks share some of them."""
    try:
        fields = Path(f"/proc/{pid}/statm").read_text("ascii").split()
    except OSError:
        return 0
    return (int(fields[1]) - int(fields[2])) * PAGE


def busy_seconds() -> float:
    """CPU seconds that all cores have worked since the machine was started."""
    user, nice, system, _, _, irq, softirq, *_ = map(
        int, Path("/proc/stat").read_text("ascii").splitlines()[0].split()[1:]
    )
    return (user + nice + system + irq + softirq) / TICKS


def disturbance(usages: Sequence[Usage]) -> str:
    """How busy others kept the machine, as a sentence."""
    room = sum(usage.wall for usage in usages) * (os.cpu_count() or 1)
    share = sum(usage.others for usage in usages) / room
    if share < QUIET:
        return f"Other work took {share:.0%} of the cores meanwhile."
    return (
        f"**Other work took {share:.0%} of the cores meanwhile**: times say nothing, and CPU "
        "seconds are roughly right."
    )


def machine() -> str:
    """The cores and the processor."""
    model = platform.machine()
    for line in Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    return f"{len(os.sched_getaffinity(0))} cores, {model}"
