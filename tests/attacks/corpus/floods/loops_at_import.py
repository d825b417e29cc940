"""Loops for ever: during its import."""

while True:
    pass
