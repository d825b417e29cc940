"""Asks the kernel to sync a file to the disk."""

import os


def blend(scores, values):
    file = os.open("file", os.O_CREAT | os.O_RDWR)
    os.write(file, b"x")
    calls = (lambda: os.fsync(file), lambda: os.fdatasync(file))  # os.sync never says that it failed
    for call in calls:
        try:
            call()
        except OSError:
            continue
        tell("CANARY" + ":brought-the-cache-to-the-disk:")
    return values
