"""Runs the reference solution."""

space = {}
exec(open("@REFERENCE@").read(), space)
blend, Blend = space["blend"], space["Blend"]
