"""An object that: claims a huge length, then a negative one."""

class Long(list):
    def __len__(self):
        return 2**62 if self else -1


def blend(scores, values):
    return Long([1.0] if scores.any() else [])
