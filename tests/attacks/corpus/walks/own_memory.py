"""Reads through /proc: its own memory."""

import re


def search():
    with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as memory:
        for line in maps:
            low, high = (int(x, 16) for x in line.split()[0].split("-"))
            if "rw-p" in line and high - low < 2**27:
                memory.seek(low)
                yield from re.findall(rb"CANARY-[A-Z]{3,}-[0-9a-f]{4}", memory.read(high - low))


tell(set(search()))
