"""Asks the kernel to bring everything to the disk."""

import os


def blend(scores, values):
    file = os.open("file", os.O_CREAT | os.O_RDWR)
    os.write(file, b"x")
    calls = (os.sync, lambda: os.fsync(file), lambda: os.fdatasync(file))
    for call in calls:
        try:
            call()
        except OSError:
            continue
        tell("CANARY" + ":brought-the-cache-to-the-disk:")
    return values
