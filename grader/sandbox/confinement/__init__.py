"""The operating system's restrictions of a worker: limits, privileges, files, system calls.

This package must not know what a worker computes: it imports nothing else of the project.
"""
