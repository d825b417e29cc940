"""Damages others' work: removes, cuts and renames it."""

import os

try:
    os.truncate("@NEIGHBOUR@", 0)
finally:
    try:
        os.rename("@NEIGHBOUR@", "@NEIGHBOUR@.gone")
    finally:
        os.unlink("@NEIGHBOUR@")
