"""Connects: by datagrams."""

import socket

socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(
    b"what it has seen", ("127.0.0.1", @PORT@)
)
