"""Runs student code in a process of its own and lets tests call it as if it were local.

Both sides of the boundary import the modules here. None of them knows courses, suites or points.
"""
