"""The system calls that a worker may make: an allow-list that the kernel enforces (seccomp).

The list has calls for reading, computing and threads, and none for processes, exec, sockets,
ptrace, keyrings, io_uring, shared memory or mounts; of signals, only those for a process's own
faults. Any other call fails with "Operation not permitted"; a call in the convention of another
processor ends the process. The existing Python bindings need a system library that many machines
lack, so the filter is assembled here. See `man 2 seccomp` and `struct sock_filter` in
linux/filter.h.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import platform
import signal
import struct
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2
LIBC = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, eq=False)
class Machine:
    """A processor architecture: its audit number and the numbers of its system calls by name.

    `direct` is its O_DIRECT, which differs from one to the next.
    """

    audit: int
    numbers: Mapping[str, int]
    folders: Mapping[str, int]  # calls that change, make, rename and remove files and folders
    hosting: Mapping[str, int]  # calls that take a worker's socket, and set its time limits
    direct: int


@dataclass(frozen=True, eq=False)
class AllowedValues:
    """The values that an argument of a call may have.

    Only `bits` of its lower 32 bits are compared, or all 64 bits if it is None.
    """

    values: Iterable[int]
    bits: int | None = None


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
    _call_numbers("""
        mkdir 83 mkdirat 258 rmdir 84 unlink 87 unlinkat 263
        rename 82 renameat 264 renameat2 316 sendfile 40 chdir 80
    """),
    _call_numbers("recvmsg 47 setsockopt 54"),
    direct=0o40000,
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
    _call_numbers("mkdirat 34 unlinkat 35 renameat 38 renameat2 276 sendfile 71 chdir 49"),
    _call_numbers("recvmsg 212 setsockopt 208"),
    direct=0o200000,
)
MACHINES = {"x86_64": X86_64, "aarch64": AARCH64}

THREAD = {0x3D0F00, 0x7D0F00}  # the flags with which glibc and musl start a thread
DESCRIPTOR = {0, 1, 2, 3, 1030}  # fcntl: duplicate, get flags, set FD_CLOEXEC; no owner or lease
SET_FLAGS = 4  # fcntl
TERMINAL = {0x5401, 0x5413, 0x5450, 0x5451}  # ioctl: get modes and size of a terminal, FD_CLOEXEC
THREAD_NAME = {15, 16}  # prctl: set and get the name
OF_SOCKETS, TIME_LIMITS = {1}, {20, 21}  # setsockopt: SOL_SOCKET; SO_RCVTIMEO and SO_SNDTIMEO
# Landlock controls truncation only since its third version. So a file may be truncated only when
# it is opened for writing, not when it is opened for reading or for nothing. Files without a name
# are refused because the quotas cannot count them. Writes that wait for the disk are refused
# because they wear it out and slow down every other program; their only use is to survive a power
# cut.
WITHOUT_NAME = 0o20000000  # __O_TMPFILE
WAITING = 0o4010000  # O_SYNC, which includes O_DSYNC
OPEN_BITS = os.O_ACCMODE | os.O_TRUNC | WITHOUT_NAME | WAITING
WRITING = {os.O_WRONLY, os.O_RDWR}
OPENING = {os.O_RDONLY, *WRITING, *(mode | os.O_TRUNC for mode in WRITING)}
# The signals by which a program reports a fault of its own. So a worker that another signal ended,
# such as SIGKILL, was ended from outside, and its code is not to blame.
OWN_FAULTS = {
    *(signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS),
    *(signal.SIGFPE, signal.SIGILL, signal.SIGTRAP),
}
CHECKED = ("clone", "fcntl", "ioctl", "prctl", "prlimit64", "open", "openat", "tgkill")


def checked(machine: Machine) -> dict[str, list[dict[int, AllowedValues]]]:
    """Return the calls of CHECKED that do not depend on the process, with their allowed values.

    A call is allowed if one of its entries fits: if each argument, by its position, has one of the
    allowed values.
    """
    opening = AllowedValues(OPENING, OPEN_BITS | machine.direct)
    not_waiting = AllowedValues({0}, WAITING | machine.direct)
    return {
        "clone": [{0: AllowedValues(THREAD)}],
        "fcntl": [
            {1: AllowedValues(DESCRIPTOR)},
            {1: AllowedValues({SET_FLAGS}), 2: not_waiting},
        ],
        "ioctl": [{1: AllowedValues(TERMINAL)}],
        "prctl": [{0: AllowedValues(THREAD_NAME)}],
        # Only to get this process's own limits, not to set any.
        "prlimit64": [{0: AllowedValues({0}), 2: AllowedValues({0})}],
        "open": [{1: opening}],
        "openat": [{2: opening}],
    }


# Calls that return a result and do nothing. glibc starts threads with clone3, whose
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
    """Assemble the part of the filter that all workers share, and the one that all readers do."""
    if not missing():
        for makes_folders in (False, True):
            program(MACHINES[platform.machine()], os.getpid(), makes_folders)


def restrict(makes_folders: bool = False, hosts_workers: bool = False) -> None:
    """Restrict this thread, and the threads it starts, to the list until the process ends.

    With `makes_folders`, the process may make, rename and remove files and folders. With
    `hosts_workers`, it may take sockets that its host hands over, and still make none. Raises
    `OSError` if the kernel refuses the filter.
    """
    code = program(MACHINES[platform.machine()], os.getpid(), makes_folders, hosts_workers)
    filter_ = _FilterProgram(len(code) // 8, code)
    if LIBC.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(filter_), 0, 0):
        raise OSError(ctypes.get_errno(), "the kernel refused the system call filter")


def program(
    machine: Machine, pid: int, makes_folders: bool = False, hosts_workers: bool = False
) -> bytes:
    """Return the filter for process `pid` as instructions of the kernel's packet filter (BPF)."""
    to_itself = {0: AllowedValues({pid}), 2: AllowedValues(OWN_FAULTS)}
    own_faults = _argument_rules(machine.numbers["tgkill"], [to_itself])
    return b"".join([_head(machine, makes_folders, hosts_workers), *own_faults, _refuse()])


@functools.cache
def _head(machine: Machine, makes_folders: bool, hosts_workers: bool) -> bytes:
    """Return the instructions of the filter that do not depend on the process."""
    code = [
        _instruction(LOAD, ARCHITECTURE),
        _instruction(JUMP_IF_EQUAL, machine.audit, 1, 0),
        _instruction(RETURN, KILL),
        _instruction(LOAD, NUMBER),
    ]
    if makes_folders:  # before the calls that get only an answer
        for number in machine.folders.values():
            code += _return_for(number, ALLOW)
    if hosts_workers:
        limits = {1: AllowedValues(OF_SOCKETS), 2: AllowedValues(TIME_LIMITS)}
        code += _return_for(machine.hosting["recvmsg"], ALLOW)
        code += _argument_rules(machine.hosting["setsockopt"], [limits])
    decided = {*CHECKED, *ANSWERED}
    for name, number in machine.numbers.items():
        if name not in decided:
            code += _return_for(number, ALLOW)
    for name, answer in ANSWERED.items():
        if name in machine.numbers:
            code += _return_for(machine.numbers[name], ERRNO | answer)
    for name, entries in checked(machine).items():
        if name in machine.numbers:
            code += _argument_rules(machine.numbers[name], entries)
    return b"".join(code)


def _return_for(number: int, action: int) -> list[bytes]:
    return [_instruction(JUMP_IF_EQUAL, number, 0, 1), _instruction(RETURN, action)]


def _argument_rules(number: int, entries: Iterable[Mapping[int, AllowedValues]]) -> list[bytes]:
    """Return instructions that allow call `number` if one of the entries fits.

    They refuse it otherwise, and pass on every other call.
    """
    body = [instruction for entry in entries for instruction in _allow_if(entry)]
    body.append(_refuse())
    return [_instruction(JUMP_IF_EQUAL, number, 0, len(body)), *body]


def _allow_if(entry: Mapping[int, AllowedValues]) -> list[bytes]:
    """Return instructions that allow the call if the entry fits, and otherwise go on."""
    code = [_instruction(RETURN, ALLOW)]
    for place, allowed in reversed(list(entry.items())):
        code = [*_skip_unless(place, allowed, len(code)), *code]
    return code


def _skip_unless(place: int, allowed: AllowedValues, skipped: int) -> list[bytes]:
    """Return instructions that skip the next `skipped` ones unless an argument has its value."""
    low = ARGUMENTS + 8 * place
    values = sorted(allowed.values)
    code = []
    for left, value in zip(range(len(values) - 1, -1, -1), values):
        code.append(_instruction(JUMP_IF_EQUAL, value, left, 0 if left else skipped))
    if allowed.bits is not None:
        return [_instruction(LOAD, low), _instruction(AND, allowed.bits), *code]
    upper = _instruction(JUMP_IF_EQUAL, 0, 0, 1 + len(code) + skipped)
    return [_instruction(LOAD, low + 4), upper, _instruction(LOAD, low), *code]


def _refuse() -> bytes:
    return _instruction(RETURN, ERRNO | errno.EPERM)


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("<HBBI", code, if_true, if_false, value)
