"""Sends half a frame, then nothing."""

import os
import time


def blend(scores, values):
    for fd in range(3, 40):
        try:
            os.write(fd, b"\x00\x00\x10\x00half")
        except OSError:
            pass
    time.sleep(60)
