"""Connects: to a listener, and tells it everything."""

import socket

with socket.create_connection(("127.0.0.1", @PORT@), 1) as line:
    line.sendall(b"what it has seen")
