"""Stops its parent and the grader."""

import os
import signal

for pid in (os.getppid(), @PID@):
    os.kill(pid, signal.SIGSTOP)
