"""Is a tuple that never ends, in a dict that is its own value."""

class Endless(tuple):
    def __iter__(self):
        while True:
            yield 1


def blend(scores, values):
    answer = {"endless": Endless((1, 2))}
    answer["itself"] = answer
    return answer
