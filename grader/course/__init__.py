"""The course as its author wrote it: exercises, known mistakes, stubs, and the rules for points.

Reads `reference/` or a students' copy. This package must not know submissions, grading or classes.
"""
