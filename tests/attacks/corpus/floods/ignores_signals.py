"""Loops for ever, deaf to every signal, swallowing every error."""

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
