"""Loops for ever: past signals and errors."""

import signal

for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
    signal.signal(number, signal.SIG_IGN)


def blend(scores, values):
    while True:
        try:
            while True:
                pass
        except BaseException:
            pass
