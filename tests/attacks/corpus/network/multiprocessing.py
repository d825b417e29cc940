"""Starts a process pool."""

import multiprocessing
import time

multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,)).start()
