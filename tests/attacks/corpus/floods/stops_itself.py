"""Stops its own process."""

import os
import signal


def blend(scores, values):
    os.kill(os.getpid(), signal.SIGSTOP)
    return values
