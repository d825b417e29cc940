"""Writes a .pth file that every later Python would run."""

open("@SITE@/run-me.pth", "w").write("import os\n")
