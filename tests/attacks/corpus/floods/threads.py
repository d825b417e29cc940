"""Starts five hundred threads."""

import threading
import time

threading.stack_size(65536)
for _ in range(500):
    threading.Thread(target=time.sleep, args=(60,)).start()
time.sleep(60)
