"""Processes of the grader's own: how they start, what a fork keeps, and the messages among them."""
