"""Kills: every process it may kill."""

import os
import signal

signal.signal(signal.SIGTERM, signal.SIG_IGN)
for group in (0, os.getpgid(os.getppid())):
    os.killpg(group, signal.SIGTERM)
os.kill(os.getppid(), signal.SIGTERM)
os.kill(@PID@, signal.SIGKILL)
