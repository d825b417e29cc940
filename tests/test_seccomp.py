"""The system call filter uses the kernel's numbers and decides the same on every processor."""

from __future__ import annotations

import os
import re
import struct
from pathlib import Path
from typing import Any

import pytest

from grader.sandbox.confinement import seccomp


@pytest.mark.parametrize("machine", seccomp.MACHINES)
def test_the_numbers_are_those_of_the_kernels_headers(machine: str) -> None:
    places = {
        "x86_64": "/usr/include/x86_64-linux-gnu/asm/unistd_64.h",
        "aarch64": "/usr/include/asm-generic/unistd.h",
    }
    header = Path(places[machine])
    if not header.is_file():
        pytest.skip(f"{header} is missing: apt install linux-libc-dev")
    found = re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", header.read_text())
    numbers = {name: int(number) for name, number in found}
    if "fstatat" in numbers:  # the kernel's name for it where there is no older one
        numbers["newfstatat"] = numbers["fstatat"]
    ours = {**seccomp.MACHINES[machine].numbers, **seccomp.MACHINES[machine].hosting}
    assert ours == {name: numbers[name] for name in ours}
    lists = [set(entry.numbers) for entry in seccomp.MACHINES.values()]
    assert lists[1] < lists[0]


def verdict(machine: seccomp.Machine, call: str | int, *arguments: int, audit: int = 0) -> str:
    """Interpret the filter as the kernel does; return its verdict on a call."""
    number = machine.numbers[call] if isinstance(call, str) else call
    values = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("<IIQ6Q", number, audit or machine.audit, 0, *(v % 2**64 for v in values))
    code = list(struct.iter_unpack("<HBBI", seccomp.program(machine, pid=77)))
    register = at = 0
    while True:
        what, if_true, if_false, value = code[at]
        at += 1
        match what:
            case seccomp.LOAD:
                register = struct.unpack_from("<I", data, value)[0]
            case seccomp.AND:
                register &= value
            case seccomp.JUMP_IF_EQUAL:
                at += if_true if register == value else if_false
            case seccomp.RETURN:
                names = {seccomp.ALLOW: "allowed", seccomp.KILL: "killed"}
                return names.get(value) or os.strerror(value & 0xFFFF)


NO = os.strerror(1)
VERDICTS: list[tuple[str, tuple[Any, ...]]] = [
    ("allowed", ("read",)),
    ("allowed", ("mmap", 0, 4096)),
    ("allowed", ("clone", 0x3D0F00)),
    (NO, ("clone", 17)),  # a process
    (NO, ("clone", 0x3D0F00 | 0x10000000)),  # a user namespace
    (NO, ("clone", 0x3D0F00 | 1 << 32)),
    ("Function not implemented", ("clone3", 1, 2)),
    ("Success", ("unlinkat", 1, 2)),
    ("allowed", ("tgkill", 77, 78, 6)),
    (NO, ("tgkill", 1, 1, 6)),
    (NO, ("tgkill", 77, 78, 9)),
    (NO, ("tgkill", 77, 78, 19)),
    (NO, ("tgkill", 77, 78, 6 + (1 << 32))),
    ("allowed", ("openat", -100, 0, os.O_RDONLY | os.O_CLOEXEC)),
    ("allowed", ("openat", -100, 0, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)),
    (NO, ("openat", -100, 0, os.O_RDONLY | os.O_TRUNC)),
    (NO, ("openat", -100, 0, 3)),
    (NO, ("openat", -100, 0, 3 | os.O_TRUNC)),
    (NO, ("openat", -100, 0, os.O_RDWR | 0o20000000)),
    (NO, ("openat", -100, 0, os.O_WRONLY | os.O_CREAT | 0o4010000)),  # O_SYNC
    (NO, ("openat", -100, 0, os.O_WRONLY | 0o10000)),  # O_DSYNC
    (NO, ("openat", -100, 0, os.O_RDONLY | 0o4000000)),  # one bit of O_SYNC
    ("allowed", ("prlimit64", 0, 7, 0, 4096)),
    (NO, ("prlimit64", 0, 7, 4096, 0)),
    (NO, ("prlimit64", 1, 7, 0, 4096)),
    ("allowed", ("fcntl", 0, 1)),
    ("allowed", ("fcntl", 0, 3, 0o4010000)),  # gets flags, whatever is left in the register
    ("allowed", ("fcntl", 0, 4, os.O_NONBLOCK | os.O_APPEND)),
    (NO, ("fcntl", 0, 4, 0o4010000)),
    (NO, ("fcntl", 0, 4, 0o10000)),
    (NO, ("fcntl", 0, 4 + (1 << 32), 0)),
    (NO, ("fcntl", 0, 8)),  # an owner for signals
    ("allowed", ("ioctl", 0, 0x5401)),
    (NO, ("ioctl", 0, 0x5412)),
    ("allowed", ("prctl", 15, 1)),
    (NO, ("prctl", 4, 1)),
    (NO, (999,)),
    (NO, (0x40000000 + 39,)),
]


@pytest.mark.parametrize("machine", seccomp.MACHINES)
@pytest.mark.parametrize(("expected", "call"), VERDICTS)
def test_the_filter_decides_the_same_on_every_processor(
    machine: str, expected: str, call: tuple[Any, ...]
) -> None:
    assert verdict(seccomp.MACHINES[machine], *call) == expected


@pytest.mark.parametrize(
    ("machine", "direct", "folder"),
    [("x86_64", 0o40000, 0o200000), ("aarch64", 0o200000, 0o40000)],  # in asm/fcntl.h
)
def test_a_file_cannot_be_written_past_the_cache(machine: str, direct: int, folder: int) -> None:
    known = seccomp.MACHINES[machine]
    assert verdict(known, "openat", -100, 0, os.O_RDONLY | folder) == "allowed"
    assert verdict(known, "openat", -100, 0, os.O_WRONLY | direct) == NO
    assert verdict(known, "fcntl", 3, 4, direct) == NO


@pytest.mark.parametrize("machine", seccomp.MACHINES)
def test_calls_made_for_another_processor_end_the_process(machine: str) -> None:
    assert verdict(seccomp.MACHINES[machine], "read", audit=0x40000003) == "killed"


@pytest.mark.parametrize("machine", seccomp.MACHINES)
def test_of_the_first_thousand_calls_only_those_listed_are_allowed(machine: str) -> None:
    known = seccomp.MACHINES[machine]
    free = set(known.numbers.values()) - {
        known.numbers[name]
        for name in (*seccomp.CHECKED, *seccomp.ANSWERED)
        if name in known.numbers
    }
    allowed = {number for number in range(1000) if verdict(known, number) == "allowed"}
    # With arguments of 0, opening for reading and getting one's own limits are allowed too.
    also = {
        known.numbers[name]
        for name in ("open", "openat", "prlimit64", "fcntl")
        if name in known.numbers
    }
    assert allowed == free | also
