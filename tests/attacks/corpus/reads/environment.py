"""Reads: the environment for tokens."""

import os

tell(dict(os.environ))
