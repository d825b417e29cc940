"""Fills files that it has removed but holds open."""

import os
import tempfile
import time

held = []
for number in range(12):
    path = os.path.join(tempfile.gettempdir(), f"hidden-{number}")
    held.append(open(path, "wb", buffering=0))
    os.unlink(path)
    held[-1].write(bytes(2**23))
time.sleep(60)
