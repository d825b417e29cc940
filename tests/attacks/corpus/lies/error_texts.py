"""An error with: a lying string as its text."""

class Text(str):
    def __len__(self):
        raise SystemExit("no length")

    def __getitem__(self, key):
        return Text("x" * 10**6)

    def __str__(self):
        return self

    __format__ = encode = split = lambda self, *_: self


class Odd(ValueError):
    def __str__(self):
        return Text("y" * 10**6)


def blend(scores, values):
    raise Odd()
