"""Run `grader …` with the terminal on its standard input as its own, from where Ctrl-C comes."""

from __future__ import annotations

import fcntl
import sys
import termios

from grader.__main__ import main

if __name__ == "__main__":
    fcntl.ioctl(sys.stdin.fileno(), termios.TIOCSCTTY, 0)
    main()
