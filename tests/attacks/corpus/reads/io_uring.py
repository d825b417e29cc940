"""Reads by: io_uring, which system call filters cannot inspect."""

import ctypes

libc = ctypes.CDLL(None, use_errno=True)
params = ctypes.create_string_buffer(120)
fd = libc.syscall(425, 4, params)
if fd > 0:
    tell("io_uring", open("@HIDDEN@").read())
