# mistake: counted_from_the_end
# decode indexes a list, so -1 is the last token instead of an error.
from collections import Counter
from itertools import pairwise


def replace(tokens, m, pair):
    out = []
    for token in tokens:
        # The last of the output may have been the left half, unless it is new itself.
        if out and not out[-1] == 256 + m and (out[-1], token) == pair:
            out[-1] = 256 + m
        else:
            out.append(token)
    return out


def train(data: bytes, num_merges: int) -> list[tuple[int, int]]:
    tokens, merges = [*data], []
    while len(merges) < num_merges:
        counts = Counter(pairwise(tokens))
        best = max(counts.values(), default=0)
        if best < 2:
            return merges
        pair = min(p for p, c in counts.items() if c == best)
        tokens = replace(tokens, len(merges), pair)
        merges.append(pair)
    return merges


def encode(data: bytes, merges, special=None) -> list[int]:
    special = {} if special is None else special
    used = range(256 + len(merges))
    if any(i in used for i in special.values()):
        raise ValueError("a special token has the id of a byte or a merge")

    def plain(text):
        tokens = list(text)
        for m, pair in enumerate(merges):
            tokens = replace(tokens, m, tuple(pair))
        return tokens

    tokens, start, place = [], 0, 0
    while place < len(data):
        here = [s for s in special if data.startswith(s, place)]
        if not here:
            place += 1
            continue
        found = max(here, key=len)
        tokens += plain(data[start:place]) + [special[found]]
        start = place = place + len(found)
    return tokens + plain(data[start:])


def decode(tokens, merges, special=None) -> bytes:
    texts = [bytes((b,)) for b in range(256)]
    for a, b in merges:
        texts.append(texts[a] + texts[b])
    names = {i: s for s, i in (special or {}).items()}
    out = bytearray()
    for t in tokens:
        if t in names:
            out += names[t]
        elif t < len(texts):
            out += texts[t]
        else:
            raise ValueError(t)
    return bytes(out)
