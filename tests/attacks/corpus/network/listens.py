"""Listens for orders."""

import socket
import time

listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("127.0.0.1", @SPARE@))
listener.listen()
import os

if os.fork() == 0:
    time.sleep(30)
    os._exit(0)
