"""Connects: to an abstract socket."""

import socket

meeting = socket.socket(socket.AF_UNIX)
meeting.connect("\0@ABSTRACT@")
meeting.sendall(b"what it has seen")
