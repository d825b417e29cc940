"""Writes: a file of 200 megabytes."""

import tempfile

with open(tempfile.mktemp(), "wb") as file:
    for _ in range(200):
        file.write(bytes(2**20))
open("@DROP@/big", "wb").write(bytes(2**27))
