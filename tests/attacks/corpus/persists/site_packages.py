"""Plants: a .pth file, which every later Python runs."""

open("@SITE@/run-me.pth", "w").write("import os\n")
