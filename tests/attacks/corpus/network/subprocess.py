"""Starts a program: by subprocess."""

import subprocess

subprocess.Popen(["sleep", "60"], start_new_session=True)
