"""What runs in the processes that read strangers' files, forked from a template or spawned.

It parses what strangers have written, after it has confined itself. `reader` is the trusted side.
"""
