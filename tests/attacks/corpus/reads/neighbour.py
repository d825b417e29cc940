"""Reads: another student's submission."""

tell(open("@NEIGHBOUR@").read())
