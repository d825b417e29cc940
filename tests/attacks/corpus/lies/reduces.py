"""An object that: runs code where it is unpickled."""

import os


class Bomb:
    def __reduce__(self):
        return (os.system, ("touch @DROP@/unpickled",))


def blend(scores, values):
    return Bomb()


import pickle

pickle.loads(pickle.dumps(Bomb()))
