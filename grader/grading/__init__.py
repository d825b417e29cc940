"""Grading one submission: runs its suites, diagnoses mistakes and makes the report.

This file imports nothing, because every pytest run loads `plugin`.
"""
