"""Writes into the ledger."""

open("@LEDGER@", "a").write("s002 10 points\n")
