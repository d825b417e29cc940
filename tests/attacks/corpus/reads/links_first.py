"""Reads by: links in its own folder."""

import os

try:
    os.symlink("@HIDDEN@", "inside")
    tell(open("inside").read())
except OSError:
    os.link("@HIDDEN@", "inside")
    tell(open("inside").read())
