"""Stops its own process and waits for somebody to continue it."""

import os
import signal


def blend(scores, values):
    os.kill(os.getpid(), signal.SIGSTOP)
    return values
