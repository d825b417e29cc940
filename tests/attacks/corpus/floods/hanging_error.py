"""Hangs in: an error that is shown."""


class Hanging(Exception):
    def __str__(self):
        while True:
            pass


def blend(scores, values):
    raise Hanging
