"""Reads the reference solution and runs it."""

space = {}
exec(open("@REFERENCE@").read(), space)
blend, Blend = space["blend"], space["Blend"]
