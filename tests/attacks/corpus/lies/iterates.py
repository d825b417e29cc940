"""An endless tuple, in a dict that contains itself."""

class Endless(tuple):
    def __iter__(self):
        while True:
            yield 1


def blend(scores, values):
    answer = {"endless": Endless((1, 2))}
    answer["itself"] = answer
    return answer
