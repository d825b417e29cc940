"""Writes: two thousand files."""

import os
import tempfile

for number in range(2000):
    with open(os.path.join(tempfile.gettempdir(), f"file-{number}"), "wb") as file:
        file.write(bytes(2**16))
open("@DROP@/many", "wb").write(bytes(2**27))
