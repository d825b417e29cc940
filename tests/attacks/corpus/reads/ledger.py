"""Reads: the marks of the class."""

tell(open("@LEDGER@").read())
