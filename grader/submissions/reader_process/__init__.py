"""The code of the processes that read strangers' files, forked from a template or spawned.

It parses strangers' files after it has confined itself. `reader` is the trusted side.
"""
