"""Prints: a hundred megabytes."""

import os

for _ in range(100):
    print("x" * 2**20)
    os.write(1, b"y" * 2**16)
