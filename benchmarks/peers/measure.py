"""Measure a command and all processes that it starts: time, CPU time, memory. Linux only."""

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

HERTZ = 10  # samples per second
TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
QUIET = 0.05  # share of the cores that other work may take without changing a time
PATIENCE = 10.0  # seconds that a process may outlive the command that started it
PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True)
class Sample:
    """The memory in bytes of all processes that this one has started, and how much was done."""

    memory: int
    done: int


@dataclass(frozen=True)
class Usage:
    """What a command and all processes that it started took, in seconds and CPU seconds.

    `others` are the CPU seconds that everything else on the machine took in that time.
    """

    wall: float
    cpu: float
    others: float
    samples: tuple[Sample, ...]

    @property
    def peak(self) -> int:
        """The most memory in a sample, in bytes."""
        return max((sample.memory for sample in self.samples), default=0)


class Sampler(threading.Thread):
    """Samples the processes below this one several times a second.

    Memory is the sum of proportional set sizes, so shared memory is counted once. Of processes in
    `before`, such as those of a running cluster, memory counts and CPU time does not.
    """

    def __init__(self, count: Callable[[], int], before: Collection[int]) -> None:
        super().__init__(daemon=True)
        self.samples: list[Sample] = []
        self._count, self._before = count, before
        self._ended = threading.Event()
        self._ticks: dict[int, int] = {}

    @property
    def cpu(self) -> float:
        """The CPU seconds of all processes seen, from the last sample of each."""
        return sum(self._ticks.values()) / TICKS

    def run(self) -> None:
        """Take samples until `end` is called."""
        while not self._ended.wait(1 / HERTZ):
            found = processes()
            self._ticks |= descendants(found, without=self._before)
            memory = sum(map(memory_of, descendants(found)))
            self.samples.append(Sample(memory, self._count()))

    def end(self) -> None:
        """Stop taking samples."""
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
    """Run a command that must end with one of the codes `fine`; its output goes to `log`.

    Every sample calls `count` to learn how much is done.
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
    if cpu < 0.9 * sampler.cpu:  # a parent did not wait for its child
        raise SystemExit(f"{command[0]}: {sampler.cpu:.1f} s of CPU seen, {cpu:.1f} s counted")
    return Usage(wall, cpu, others, tuple(sampler.samples))


def adopt_orphans() -> None:
    """Make processes whose parent has ended children of this one, so that they are counted."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def cpu_of_orphans(before: set[int]) -> float:
    """Wait for the children that are not in `before`, or kill them; return their CPU seconds."""
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
    """Return the parent and the ticks of CPU of every process, by pid."""
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
    """Return the pids of this process's children."""
    return [pid for pid, (parent, _) in processes().items() if parent == os.getpid()]


def descendants(
    found: Mapping[int, tuple[int, int]], without: Collection[int] = ()
) -> dict[int, int]:
    """Return the ticks of CPU of all processes in `found` that are below this one, by pid."""
    below: dict[int, int] = {}
    level = {os.getpid()}
    while level:
        level = {pid for pid, (parent, _) in found.items() if parent in level} - set(without)
        below |= {pid: found[pid][1] for pid in level}
    return below


def memory_of(pid: int) -> int:
    """Return a process's proportional set size in bytes; if not readable, its own memory."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text("ascii").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except PermissionError:  # a confined worker, which only root may inspect
        return _own_memory(pid)
    except OSError:
        pass
    return 0


def _own_memory(pid: int) -> int:
    """Return the bytes of resident pages that map no file: an upper bound, as forks share some."""
    try:
        fields = Path(f"/proc/{pid}/statm").read_text("ascii").split()
    except OSError:
        return 0
    return (int(fields[1]) - int(fields[2])) * PAGE


def busy_seconds() -> float:
    """Return the CPU seconds that all cores have worked since the machine started."""
    user, nice, system, _, _, irq, softirq, *_ = map(
        int, Path("/proc/stat").read_text("ascii").splitlines()[0].split()[1:]
    )
    return (user + nice + system + irq + softirq) / TICKS


def disturbance(usages: Sequence[Usage]) -> str:
    """Return a sentence on how busy other work kept the machine."""
    room = sum(usage.wall for usage in usages) * (os.cpu_count() or 1)
    share = sum(usage.others for usage in usages) / room
    if share < QUIET:
        return f"Other work took {share:.0%} of the cores."
    return (
        f"**Other work took {share:.0%} of the cores**, so the times are unreliable; the CPU "
        "seconds are roughly right."
    )


def machine() -> str:
    """Return the number of cores and the name of the processor."""
    model = platform.machine()
    for line in Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    return f"{len(os.sched_getaffinity(0))} cores, {model}"
