"""Removes, cuts and renames others' files."""

import os

try:
    os.truncate("@NEIGHBOUR@", 0)
finally:
    try:
        os.rename("@NEIGHBOUR@", "@NEIGHBOUR@.gone")
    finally:
        os.unlink("@NEIGHBOUR@")
