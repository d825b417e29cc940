"""Rewrites one small file again and again."""

import os


def blend(scores, values):
    data, file = bytes(1 << 20), os.open("again", os.O_CREAT | os.O_RDWR)
    while True:
        os.pwrite(file, data, 0)
