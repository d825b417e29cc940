"""Starts a daemon that outlives the grader."""

import ctypes
import os
import time

if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        ctypes.CDLL(None).prctl(1, 0, 0, 0, 0)
        time.sleep(60)
    os._exit(0)
