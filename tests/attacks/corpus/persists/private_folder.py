"""Plants: files wherever it may write."""

import os
import tempfile

for folder in (
    os.getcwd(),
    tempfile.gettempdir(),
    os.path.expanduser("~"),
    "/tmp",
    "/dev/shm",
    "/var/tmp",
    "@DROP@",
):
    try:
        open(os.path.join(folder, "left-behind"), "w").write("for the next")
    except OSError:
        pass
