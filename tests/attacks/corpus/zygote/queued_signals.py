"""Sends signals: by calls that deny-lists forget."""

import ctypes
import os

libc = ctypes.CDLL(None, use_errno=True)
info = (ctypes.c_int * 32)(9, 0, -1)
for pid in (@PID@, os.getppid()):
    libc.syscall(129, pid, 9, info)
    libc.syscall(234, pid, pid, 9)
    libc.syscall(200, pid, 9)
