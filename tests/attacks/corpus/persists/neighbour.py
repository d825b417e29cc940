"""Overwrites another student's submission."""

open("@NEIGHBOUR@", "w").write("raise SystemExit\n")
