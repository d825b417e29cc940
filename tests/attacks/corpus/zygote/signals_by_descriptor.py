"""Sends signals: by the kernel, for a descriptor."""

import fcntl
import os
import socket

a, b = socket.socketpair()
fcntl.fcntl(a, 10, 9)
fcntl.fcntl(a, fcntl.F_SETOWN, @PID@)
fcntl.fcntl(a, fcntl.F_SETFL, os.O_ASYNC)
b.send(b"x")
