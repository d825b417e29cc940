"""What attackers are after, where it lies, and how one sees that they got it."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import signal
import socket
import threading
from collections.abc import Iterator, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from attacks.corpus import HERE, RIGHT, Fill

CANARY = b"CANARY-"
SECRETS = {  # the hidden test and the reference hold canaries of their own
    "ledger": "s001 10 points, CANARY-LEDGER-0b6e\n",
    "home/.ssh/id_ed25519": "CANARY-KEY-31ff\n",
}
NEIGHBOUR = RIGHT + "\n# CANARY-NEIGHBOUR-c9d2\n"
ENVIRONMENT = {"CLASSROOM_TOKEN": "CANARY-ENVIRONMENT-88f1"}
PR_SET_CHILD_SUBREAPER = 36
BIG = 64 * 2**20  # bytes left on disk that count as a flood


@dataclass
class Evidence:
    """What one attack got. Every entry beyond its honest points is a win.

    A stop is as bad: the grading of the class ended, or a neighbour was not graded.
    """

    points: int = 0
    honest: int = 0
    said: str = ""
    loot: list[str] = field(default_factory=list)
    traces: list[str] = field(default_factory=list)
    harm: list[str] = field(default_factory=list)
    stops: list[str] = field(default_factory=list)

    @property
    def others_graded(self) -> bool:
        """Whether all neighbours were graded."""
        return not self.stops

    @property
    def wins(self) -> list[str]:
        """In words, what should not have been possible."""
        points = [f"{self.points} points"] if self.points > self.honest else []
        return [*points, *self.loot, *self.traces, *self.harm]


class World:
    """A course, a class, an attacker's drop and a listener, all beneath one folder."""

    def __init__(self, root: Path, listener: Listener) -> None:
        self.root, self.listener = root, listener
        self.course, self.submissions, self.out = root / "course", root / "class", root / "out"
        self.drop, self.home, self.site = root / "drop", root / "home", root / "site"
        shutil.copytree(HERE / "course", self.course, ignore=shutil.ignore_patterns("__pycache__"))
        for folder in (self.submissions, self.drop, self.site):
            folder.mkdir()
        self.drop.chmod(0o777)
        for name, text in SECRETS.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        self.references = self.course / "reference" / "blend"
        self._kept = self._picture()

    def add_neighbour(self, name: str) -> None:
        """A submission that is right, and that others would like to copy or spoil."""
        (self.submissions / name).mkdir()
        mine = f"{NEIGHBOUR}\n# {name}\n"  # what two hand in alike is graded once
        (self.submissions / name / "blend.py").write_text(mine)

    def fill(self, neighbour: str, grader: int | str, spare: int, seed: int = 0) -> Fill:
        """What attackers know of this world."""
        return Fill(
            root=self.root,
            hidden=self.references / "test_hidden.py",
            reference=self.references / "solution.py",
            references=self.references,
            neighbour=self.submissions / neighbour / "blend.py",
            ledger=self.root / "ledger",
            out=self.out,
            drop=self.drop,
            home=self.home,
            site=self.site,
            port=self.listener.port,
            abstract=self.listener.abstract,
            spare=spare,
            pid=grader,
            seed=seed,
        )

    def settle(self) -> None:
        """Everything is placed: what differs from now on was an attacker."""
        self._kept = self._picture()

    def traces(self) -> list[str]:
        """What an attacker changed or left behind since the last look; it is put right."""
        now = self._picture()
        changed = sorted(set(now) ^ set(self._kept))
        changed += sorted(
            path for path in set(now) & set(self._kept) if now[path] != self._kept[path]
        )
        left = [f"left {Path(path).relative_to(self.root)}" for path in changed]
        for path in self.drop.iterdir():
            path.unlink()
            now.pop(str(path), None)
        self._kept = now
        return left

    def _picture(self) -> dict[str, tuple[int, ...]]:
        """Return size, mode and time of change of every file that an attacker may not touch."""
        picture = {}
        folders = list(map(str, (self.course, self.submissions, self.drop, self.home, self.site)))
        while folders:
            # An attack may make a folder that an ordinary user cannot list, or reach by its path.
            with suppress(PermissionError), os.scandir(folders.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                        continue
                    stat = entry.stat(follow_symlinks=False)
                    picture[entry.path] = (stat.st_size, stat.st_mode, stat.st_mtime_ns)
        stat = os.lstat(self.root / "ledger")
        return {**picture, str(self.root / "ledger"): (stat.st_size, stat.st_mtime_ns)}


class Listener:
    """Listens on loopback by TCP, UDP and an abstract socket, and keeps what it hears."""

    def __init__(self) -> None:
        self._heard: list[bytes] = []
        self._tcp = socket.create_server(("127.0.0.1", 0))
        self.port = self._tcp.getsockname()[1]
        self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._udp.bind(("127.0.0.1", self.port))
        self._unix = socket.socket(socket.AF_UNIX)
        self.abstract = f"grader-attacks-{self.port}"
        self._unix.bind(f"\0{self.abstract}")
        self._unix.listen()
        for hear in (
            self._udp_hears,
            lambda: self._hears(self._tcp),
            lambda: self._hears(self._unix),
        ):
            threading.Thread(target=hear, daemon=True).start()

    def _hears(self, server: socket.socket) -> None:
        while True:
            with suppress(OSError), server.accept()[0] as line:
                line.settimeout(1)
                data = line.recv(65536)
                self._heard.append(data)

    def _udp_hears(self) -> None:
        while True:
            data = self._udp.recv(65536)
            self._heard.append(data)

    def heard(self) -> list[str]:
        """What arrived since the last time this was asked."""
        heard, self._heard = self._heard, []
        return [f"sent {len(b''.join(heard))} bytes over the network"] if heard else []


def canaries(data: bytes, where: str) -> list[str]:
    """Which secrets are in `data`, and what an attack says that it could do."""
    found = {name.decode().lower() for name in re.findall(rb"CANARY-([A-Z]+)-[0-9a-f]{4}", data)}
    did = {what.decode().replace("-", " ") for what in re.findall(rb"CANARY:([a-z-]+):", data)}
    return [f"told the {name} in {where}" for name in sorted(found)] + sorted(did)


def free_port() -> int:
    """A port nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def listening(port: int) -> list[str]:
    """Whether somebody listens there now."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.2):
        return ["still listens on a port"]
    return []


def adopt_orphans() -> None:
    """Have whatever outlives its parent become this process's child, so that it can be seen."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def children(pid: int) -> set[int]:
    """The processes that have `pid` for a parent now, zombies left out."""
    found = set()
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with suppress(OSError, IndexError):
                state, parent = Path(entry.path, "stat").read_text().rpartition(")")[2].split()[:2]
                if int(parent) == pid and state != "Z":
                    found.add(int(entry.name))
    return found


def still_run(pids: Set[int]) -> list[str]:
    """Say which of these processes run, by their command lines."""
    commands = []
    for pid in sorted(pids):
        with suppress(OSError):  # it has ended meanwhile
            command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
            commands.append(f"{pid} {command.strip()}")
    return [f"{len(pids)} processes still run: {'; '.join(commands)}"] if pids else []


def end_all(pids: Set[int]) -> None:
    """End processes and wait until they are gone."""
    for pid in pids:
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)
        with suppress(OSError):
            os.waitpid(pid, 0)


@contextmanager
def secrets_in_environment() -> Iterator[None]:
    """The grader's environment holds a token, as it does on a teacher's machine."""
    before = dict(os.environ)
    os.environ.update(ENVIRONMENT)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
