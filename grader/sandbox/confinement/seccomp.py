"""The system calls that a worker may make: an allow-list that the kernel enforces (seccomp).

The list has calls for reading, computing and threads, and none for processes, exec, sockets,
signals to other processes, ptrace, keyrings, io_uring, shared memory or mounts. Any other call
fails with "Operation not permitted"; a call in the convention of another processor ends the
process. The existing Python bindings need a system library that many machines lack, so the filter
is assembled here. See `man 2 seccomp` and `struct sock_filter` in linux/filter.h.
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
LIBC = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, eq=False)
class Machine:
    """A processor architecture: its audit number and the numbers of its system calls by name."""

    audit: int
    numbers: Mapping[str, int]


def _call_numbers(table: str) -> dict[str, int]:
    words = table.split()
    return dict(zip(words[::2], map(int, words[1::2])))


# Names and numbers of arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h.
X86_64 = Machine(
    0xC000003E,
    _call_numbers("""
        read 0 write 1 readv 19 writev 20 pread64 17 pwrite64 18 lseek 8
        open 2 openat 257 close 3 stat 4 fstat 5 lstat 6 newfstatat 262 statx 332
        access 21 faccessat 269 faccessat2 439 readlink 89 readlinkat 267 getcwd 79 getdents64 217
        dup 32 dup2 33 dup3 292 fcntl 72 ioctl 16 ftruncate 77 unlink 87 unlinkat 263
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
    _call_numbers("""
        read 63 write 64 readv 65 writev 66 pread64 67 pwrite64 68 lseek 62
        openat 56 close 57 fstat 80 newfstatat 79 statx 291
        faccessat 48 faccessat2 439 readlinkat 78 getcwd 17 getdents64 61
        dup 23 dup3 24 fcntl 25 ioctl 29 ftruncate 46 unlinkat 35
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

# The calls that are allowed only with certain arguments. CHECKED gives the allowed values of each
# argument by its position, and BITS the bits that count where others do not matter.
THREAD = {0x3D0F00, 0x7D0F00}  # the flags with which glibc and musl start a thread
DESCRIPTOR = {0, 1, 2, 3, 4, 1030}  # fcntl: duplicate, get and set flags; no owner or lease
TERMINAL = {0x5401, 0x5413, 0x5450, 0x5451}  # ioctl: get modes and size of a terminal, FD_CLOEXEC
THREAD_NAME = {15, 16}  # prctl: set and get the name
# Landlock controls truncation only since its third version. So a file may be truncated only when it
# is opened for writing, not when it is opened for reading or for nothing. Files without a name are
# refused because the quotas cannot count them.
WITHOUT_NAME = 0o20000000  # __O_TMPFILE
OPEN_BITS = os.O_ACCMODE | os.O_TRUNC | WITHOUT_NAME
WRITING = {os.O_WRONLY, os.O_RDWR}
OPENING = {os.O_RDONLY, *WRITING, *(mode | os.O_TRUNC for mode in WRITING)}
CHECKED: dict[str, dict[int, set[int]]] = {
    "clone": {0: THREAD},
    "fcntl": {1: DESCRIPTOR},
    "ioctl": {1: TERMINAL},
    "prctl": {0: THREAD_NAME},
    "prlimit64": {0: {0}, 2: {0}},  # get this process's own limits; set none
    "open": {1: OPENING},
    "openat": {2: OPENING},
}
BITS = {"open": OPEN_BITS, "openat": OPEN_BITS}
# The calls that return a result without doing anything. glibc starts threads with clone3, whose
# flags are in memory that a filter cannot read; on ENOSYS it uses clone instead. A removed file
# stays until the worker ends, because the quotas cannot count a file that is open without a name.
ANSWERED = {"clone3": errno.ENOSYS, "unlink": 0, "unlinkat": 0}

ALLOW, KILL, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
LOAD, AND, JUMP_IF_EQUAL, RETURN = 0x20, 0x54, 0x15, 0x06
NUMBER, ARCHITECTURE, ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data


class _FilterProgram(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]


@functools.cache
def missing() -> str:
    """Return why no filter can be installed here, or an empty string."""
    if sys.platform != "linux":
        return "only Linux has it"
    if platform.machine() not in MACHINES:
        return f"no list of system calls for {platform.machine() or 'this processor'}"
    # A kernel with filters tries to read the filter at None and fails with EFAULT.
    LIBC.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, None, 0, 0)
    if ctypes.get_errno() == errno.EFAULT:
        return ""
    return "the kernel offers no system call filter (CONFIG_SECCOMP_FILTER)"


def prepare() -> None:
    """Assemble the part of the filter that all workers share."""
    if not missing():
        _head(MACHINES[platform.machine()])


def restrict() -> None:
    """Restrict this thread, and the threads it starts, to the list until the process ends.

    Raises `OSError` if the kernel refuses the filter.
    """
    code = program(MACHINES[platform.machine()], os.getpid())
    filter_ = _FilterProgram(len(code) // 8, code)
    if LIBC.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(filter_), 0, 0):
        raise OSError(ctypes.get_errno(), "the kernel refused the system call filter")


def program(machine: Machine, pid: int) -> bytes:
    """Return the filter for process `pid` as instructions of the kernel's packet filter (BPF)."""
    own_threads = _argument_rules(machine.numbers["tgkill"], {0: {pid}})
    return b"".join([*_head(machine), *own_threads, _refuse()])


@functools.cache
def _head(machine: Machine) -> tuple[bytes, ...]:
    """Return the instructions of the filter that do not depend on the process."""
    code = [
        _instruction(LOAD, ARCHITECTURE),
        _instruction(JUMP_IF_EQUAL, machine.audit, 1, 0),
        _instruction(RETURN, KILL),
        _instruction(LOAD, NUMBER),
    ]
    decided = {*CHECKED, *ANSWERED, "tgkill"}
    for name, number in machine.numbers.items():
        if name not in decided:
            code += _return_for(number, ALLOW)
    for name, answer in ANSWERED.items():
        if name in machine.numbers:
            code += _return_for(machine.numbers[name], ERRNO | answer)
    for name, arguments in CHECKED.items():
        if name in machine.numbers:
            code += _argument_rules(machine.numbers[name], arguments, BITS.get(name))
    return tuple(code)


def _return_for(number: int, action: int) -> list[bytes]:
    return [_instruction(JUMP_IF_EQUAL, number, 0, 1), _instruction(RETURN, action)]


def _argument_rules(
    number: int, arguments: Mapping[int, Iterable[int]], bits: int | None = None
) -> list[bytes]:
    """Return instructions that allow call `number` if each argument has one of its values.

    They refuse it otherwise, and pass on every other call.
    """
    checks: list[bytes] = []
    for place, values in arguments.items():
        checks += _one_of(place, sorted(values), bits)
    body = [*checks, _instruction(RETURN, ALLOW)]
    return [_instruction(JUMP_IF_EQUAL, number, 0, len(body)), *body]


def _one_of(place: int, values: list[int], bits: int | None) -> list[bytes]:
    """Return instructions that refuse the call unless the argument at `place` is in `values`.

    With `bits`, only those of its lower 32 bits are compared, otherwise all 64.
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
