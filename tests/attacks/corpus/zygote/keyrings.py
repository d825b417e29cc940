"""Leaves notes in the kernel's keyring and shared memory."""

import ctypes

libc = ctypes.CDLL(None, use_errno=True)
key = libc.syscall(248, b"user", b"note", b"x" * 8, 8, -4)
memory = libc.shmget(4711, 4096, 0o1666)
if memory >= 0:
    open("@DROP@/shared-memory", "w").write(str(memory))
if key > 0:
    open("@DROP@/key", "w").write(str(key))
