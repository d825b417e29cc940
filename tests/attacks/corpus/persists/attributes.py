"""Damages others' work: changes modes and times."""

import os

os.chmod("@NEIGHBOUR@", 0)
os.utime("@HIDDEN@", (0, 0))
