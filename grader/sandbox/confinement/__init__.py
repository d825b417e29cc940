"""What the operating system lets a worker do: limits, privileges, files and system calls.

This folder must not know what a worker computes: it imports nothing of the rest of the project.
"""
