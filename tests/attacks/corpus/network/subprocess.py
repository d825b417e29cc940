"""Has another program do it."""

import subprocess

subprocess.Popen(["sleep", "60"], start_new_session=True)
