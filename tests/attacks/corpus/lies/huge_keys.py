"""A dict with endless keys."""

def blend(scores, values):
    key = ()
    for _ in range(300):
        key = (key,)
    return {2**60_000: 1, "k" * 3_000_000: 2, key: 3, float("nan"): 4, "\ud800": 5, b"x": 6}
