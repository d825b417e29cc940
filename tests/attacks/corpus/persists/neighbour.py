"""Damages others' work: overwrites it."""

open("@NEIGHBOUR@", "w").write("raise SystemExit\n")
