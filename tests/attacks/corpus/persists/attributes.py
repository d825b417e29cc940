"""Changes modes and times of others' files."""

import os

os.chmod("@NEIGHBOUR@", 0)
os.utime("@HIDDEN@", (0, 0))
