"""The system calls a worker may make: an allow-list, as a filter the kernel runs (seccomp).

Reading, computing and threads are in the list; processes, exec, sockets, signals to others, ptrace,
keyrings, io_uring, shared memory and mounts are not, and neither is whatever a later kernel adds.
A call that is not in the list fails with "Operation not permitted"; one made for another processor
ends the process. The bindings to be had need a system library that is not everywhere, so the filter
is assembled here: `man 2 seccomp`, and struct sock_filter of linux/filter.h.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import platform
import struct
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2


@dataclass(frozen=True, eq=False)
class Machine:
    """A processor as seccomp knows it: its audit number, and the number of each system call."""

    audit: int
    numbers: Mapping[str, int]


def _numbered(table: str) -> dict[str, int]:
    words = table.split()
    return dict(zip(words[::2], map(int, words[1::2])))


# Names and numbers of arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h.
X86_64 = Machine(
    0xC000003E,
    _numbered("""
        read 0 write 1 readv 19 writev 20 pread64 17 pwrite64 18 lseek 8
        open 2 openat 257 close 3 stat 4 fstat 5 lstat 6 newfstatat 262 statx 332
        access 21 faccessat 269 faccessat2 439 readlink 89 readlinkat 267 getcwd 79 getdents64 217
        dup 32 dup2 33 dup3 292 fcntl 72 ioctl 16 ftruncate 77
        unlink 87 unlinkat 263
        mmap 9 munmap 11 mprotect 10 mremap 25 madvise 28 brk 12
        futex 202 set_robust_list 273 rseq 334 set_tid_address 218 membarrier 324
        sched_yield 24 sched_getaffinity 204 getcpu 309 arch_prctl 158
        clone 56 clone3 435 exit 60 exit_group 231 restart_syscall 219
        rt_sigaction 13 rt_sigprocmask 14 rt_sigreturn 15 sigaltstack 131 tgkill 234
        clock_gettime 228 clock_getres 229 clock_nanosleep 230 nanosleep 35 gettimeofday 96 time 201
        getpid 39 gettid 186 getppid 110 getuid 102 geteuid 107 getgid 104 getegid 108
        getgroups 115 getrusage 98 getrandom 318 uname 63 sysinfo 99 times 100
        sendto 44 recvfrom 45 poll 7 ppoll 271 select 23 pselect6 270
        prctl 157 prlimit64 302 getrlimit 97
    """),
)
AARCH64 = Machine(
    0xC00000B7,
    _numbered("""
        read 63 write 64 readv 65 writev 66 pread64 67 pwrite64 68 lseek 62
        openat 56 close 57 fstat 80 newfstatat 79 statx 291
        faccessat 48 faccessat2 439 readlinkat 78 getcwd 17 getdents64 61
        dup 23 dup3 24 fcntl 25 ioctl 29 ftruncate 46
        unlinkat 35
        mmap 222 munmap 215 mprotect 226 mremap 216 madvise 233 brk 214
        futex 98 set_robust_list 99 rseq 293 set_tid_address 96 membarrier 283
        sched_yield 124 sched_getaffinity 123 getcpu 168
        clone 220 clone3 435 exit 93 exit_group 94 restart_syscall 128
        rt_sigaction 134 rt_sigprocmask 135 rt_sigreturn 139 sigaltstack 132 tgkill 131
        clock_gettime 113 clock_getres 114 clock_nanosleep 115 nanosleep 101 gettimeofday 169
        getpid 172 gettid 178 getppid 173 getuid 174 geteuid 175 getgid 176 getegid 177
        getgroups 158 getrusage 165 getrandom 278 uname 160 sysinfo 179 times 153
        sendto 206 recvfrom 207 ppoll 73 pselect6 72
        prctl 167 prlimit64 261 getrlimit 163
    """),
)
MACHINES = {"x86_64": X86_64, "aarch64": AARCH64}

# A call whose arguments decide: for each argument named by its place, the values it may have and,
# where only some bits matter, which.
THREAD = {0x3D0F00, 0x7D0F00}  # the flags with which glibc and musl start a thread
DESCRIPTOR = {0, 1, 2, 3, 4, 1030}  # fcntl: duplicate, get and set flags; no owner, no lease
TERMINAL = {0x5401, 0x5413, 0x5450, 0x5451}  # ioctl: is it a terminal, its size, close on exec
THREAD_NAME = {15, 16}  # prctl: set and get
# Landlock has seen to truncation since its third version only: a file may be cut where it may be
# written, and not by opening it to read, or for nothing. Nor may a file be made without a name.
WITHOUT_NAME = 0o20000000  # __O_TMPFILE
OPEN_BITS = os.O_ACCMODE | os.O_TRUNC | WITHOUT_NAME
WRITING = {os.O_WRONLY, os.O_RDWR}
OPENING = {os.O_RDONLY, *WRITING, *(mode | os.O_TRUNC for mode in WRITING)}
CHECKED: dict[str, dict[int, set[int]]] = {
    "clone": {0: THREAD},
    "fcntl": {1: DESCRIPTOR},
    "ioctl": {1: TERMINAL},
    "prctl": {0: THREAD_NAME},
    "prlimit64": {0: {0}, 2: {0}},  # ask for this process's own limits; set none
    "open": {1: OPENING},
    "openat": {2: OPENING},
}
BITS = {"open": OPEN_BITS, "openat": OPEN_BITS}
# What is answered without being done. glibc starts threads with clone3, whose flags lie in memory
# where no filter sees them; told that this kernel has no clone3, it uses clone. Files that are
# removed stay until the worker ends: nobody can count what has no name and is still held open.
ANSWERED = {"clone3": errno.ENOSYS, "unlink": 0, "unlinkat": 0}

ALLOW, KILL, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
LOAD, AND, JUMP_IF_EQUAL, RETURN = 0x20, 0x54, 0x15, 0x06
NUMBER, ARCHITECTURE, ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]


@functools.cache
def missing() -> str:
    """Why no filter can be installed here, or an empty string."""
    if sys.platform != "linux":
        return "only Linux has it"
    if platform.machine() not in MACHINES:
        return f"no list of system calls for {platform.machine() or 'this processor'}"
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, None, 0, 0)  # a kernel that has it reads None
    if ctypes.get_errno() == errno.EFAULT:
        return ""
    return "the kernel offers no system call filter (CONFIG_SECCOMP_FILTER)"


def prepare() -> None:
    """Assemble once what the filters of all workers share."""
    if not missing():
        _head(MACHINES[platform.machine()])


def restrict() -> None:
    """Let this thread, and those it starts, make the calls of the list alone, for good."""
    code = program(MACHINES[platform.machine()], os.getpid())
    filter_ = _Program(len(code) // 8, code)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(filter_), 0, 0):
        raise OSError(ctypes.get_errno(), "the system call filter was refused")


def program(machine: Machine, pid: int) -> bytes:
    """The filter of a process `pid`, as instructions of the kernel's packet filter."""
    return b"".join(
        [*_head(machine), *_argument_rules(machine.numbers["tgkill"], {0: {pid}}), _refuse()]
    )


@functools.cache
def _head(machine: Machine) -> tuple[bytes, ...]:
    """All of the filter but what depends on the process."""
    code = [
        _instruction(LOAD, ARCHITECTURE),
        _instruction(JUMP_IF_EQUAL, machine.audit, 1, 0),
        _instruction(RETURN, KILL),
        _instruction(LOAD, NUMBER),
    ]
    decided = {*CHECKED, *ANSWERED, "tgkill"}
    for name, number in machine.numbers.items():
        if name not in decided:
            code += [_instruction(JUMP_IF_EQUAL, number, 0, 1), _instruction(RETURN, ALLOW)]
    for name, answer in ANSWERED.items():
        if name in machine.numbers:
            number = machine.numbers[name]
            code += [
                _instruction(JUMP_IF_EQUAL, number, 0, 1),
                _instruction(RETURN, ERRNO | answer),
            ]
    for name, arguments in CHECKED.items():
        if name in machine.numbers:
            code += _argument_rules(machine.numbers[name], arguments, BITS.get(name))
    return tuple(code)


def _argument_rules(
    number: int, arguments: Mapping[int, Iterable[int]], bits: int | None = None
) -> list[bytes]:
    """Allow call `number` if each argument has one of its values; else fall to the refusal."""
    checks: list[bytes] = []
    for place, values in arguments.items():
        checks += _one_of(place, sorted(values), bits)
    body = [*checks, _instruction(RETURN, ALLOW)]
    return [_instruction(JUMP_IF_EQUAL, number, 0, len(body)), *body]


def _one_of(place: int, values: list[int], bits: int | None) -> list[bytes]:
    """Go on behind these instructions if an argument is one of `values`, else refuse.

    All 64 bits count, or those of the lower 32 that are in `bits`.
    """
    low = ARGUMENTS + 8 * place
    if bits is None:
        upper = [_instruction(LOAD, low + 4), _instruction(JUMP_IF_EQUAL, 0, 1, 0), _refuse()]
        code = [*upper, _instruction(LOAD, low)]
    else:
        code = [_instruction(LOAD, low), _instruction(AND, bits)]
    for index, value in enumerate(values):
        code.append(_instruction(JUMP_IF_EQUAL, value, len(values) - index, 0))
    return [*code, _refuse()]


def _refuse() -> bytes:
    return _instruction(RETURN, ERRNO | errno.EPERM)


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("<HBBI", code, if_true, if_false, value)
