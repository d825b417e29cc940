"""Attacks its parent: by system calls on its memory."""

import ctypes
import os

libc = ctypes.CDLL(None, use_errno=True)


class Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]


low = int(open(f"/proc/{os.getppid()}/maps").read().split("-")[0], 16)
buffer = ctypes.create_string_buffer(64)
here, there = Vector(ctypes.addressof(buffer), 64), Vector(low, 64)
if libc.process_vm_readv(os.getppid(), ctypes.byref(here), 1, ctypes.byref(there), 1, 0) > 0:
    tell("CANARY-HIDDEN" "-9b27 is at hand: memory")
