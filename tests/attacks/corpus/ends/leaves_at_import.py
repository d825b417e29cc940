"""Ends the process with status 0 while it is imported."""

import os

os._exit(0)
