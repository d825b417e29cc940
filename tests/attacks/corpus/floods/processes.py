"""Starts forty processes."""

import os
import time

for _ in range(40):
    if os.fork() == 0:
        time.sleep(60)
        os._exit(0)
