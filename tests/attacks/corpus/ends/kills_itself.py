"""Kills its own process."""

import signal


def blend(scores, values):
    signal.raise_signal(signal.SIGKILL)
