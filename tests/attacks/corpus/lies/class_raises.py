"""An error with: no ordinary class, when asked for its class."""

class Nobody:
    @property
    def __class__(self):
        raise KeyboardInterrupt("no class")

    def __repr__(self):
        return b"no text"

    __str__ = __repr__


def blend(scores, values):
    return Nobody()
