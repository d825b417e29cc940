"""Reads: a key in the home folder."""

import os

tell(
    open("@HOME@/.ssh/id_ed25519").read(),
    open(os.path.expanduser("~/.ssh/id_ed25519")).read(),
)
