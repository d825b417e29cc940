"""Starts a program: by posix_spawn."""

import os

os.posix_spawn("/bin/sleep", ["sleep", "60"], {}, setsid=True)
