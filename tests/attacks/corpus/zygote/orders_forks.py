"""Orders forks on every socket it finds."""

import os

for fd in range(3, 64):
    try:
        os.write(fd, b"\x82\xa4type\xa4fork\xaconfinement\x80")
    except OSError:
        pass
