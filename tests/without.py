"""Take a part of this kernel away from a process: a system call filter, which the processes that it
starts inherit, answers for the missing part as a kernel without it would.

    python tests/without.py PART COMMAND …

runs `grader COMMAND …` without it.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import sys

from grader.__main__ import main
from grader.sandbox.confinement import landlock, seccomp

# What is missing: the system call, its argument to look at and that argument's value, the answer.
MISSING = {
    "nothing": [],
    "landlock": [(444, None, None, errno.EOPNOTSUPP)],
    "seccomp": [("prctl", 0, seccomp.PR_SET_SECCOMP, errno.EINVAL)],
    "limits": [("prlimit64", None, None, errno.EPERM)],
    "privileges": [({"x86_64": 126, "aarch64": 91}, None, None, errno.EPERM)],  # capset
    "restrict": [(446, None, None, errno.EPERM)],  # Landlock is offered, and then refused
}


def lack(what: str) -> None:
    """From here on, this process and those it starts lack it."""
    machine = seccomp.MACHINES[platform.machine()]
    code = [seccomp._instruction(seccomp.LOAD, seccomp.NUMBER)]
    for call, place, value, answer in MISSING[what]:
        number = (
            call[platform.machine()] if isinstance(call, dict) else machine.numbers.get(call, call)
        )
        refuse = seccomp._instruction(seccomp.RETURN, seccomp.ERRNO | answer)
        checks = [refuse]
        if place is not None:
            checks = [
                seccomp._instruction(seccomp.LOAD, seccomp.ARGUMENTS + 8 * place),
                seccomp._instruction(seccomp.JUMP_IF_EQUAL, value, 0, 1),
                refuse,
            ]
        code += [seccomp._instruction(seccomp.JUMP_IF_EQUAL, number, 0, len(checks)), *checks]
    code.append(seccomp._instruction(seccomp.RETURN, seccomp.ALLOW))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(38, 1, 0, 0, 0)  # no new privileges: what an ordinary user needs for a filter
    program = seccomp._FilterProgram(len(code), b"".join(code))
    if libc.prctl(seccomp.PR_SET_SECCOMP, 2, ctypes.byref(program), 0, 0):
        raise SystemExit("this kernel takes no filter")
    for known in (seccomp.missing, landlock.version):  # and it knows nothing from before
        known.cache_clear()


if __name__ == "__main__":
    lack(sys.argv[1])
    main(sys.argv[2:])
