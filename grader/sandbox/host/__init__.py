"""The trusted side of the boundary: starts workers, sends requests, checks and unpacks answers.

It never runs a student's code itself, and must not know the worth of an answer.
"""
