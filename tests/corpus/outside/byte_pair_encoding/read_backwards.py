# mistake: not in the catalogue: the text is read backwards in training
import re
from collections import Counter


def sub(s, pair, n):
    return s.replace(chr(pair[0]) + chr(pair[1]), chr(n))


def train(data, num_merges):
    s, merges = data.decode("latin-1"), []
    for n in range(256, 256 + num_merges):
        c = Counter(zip(s, s[1:]))
        if max(c.values(), default=0) < 2:
            break
        a, b = min(c, key=lambda p: (-c[p], p))
        merges.append((ord(a), ord(b)))
        s = sub(s, merges[-1], n)
    return merges


def vocabulary(merges, special):
    v = [bytes([i]) for i in range(256)]
    for a, b in merges:
        v.append(v[a] + v[b])
    v = dict(enumerate(v))
    for name, i in (special or {}).items():
        if i in v:
            raise ValueError(i)
        v[i] = name
    return v


def encode(data, merges, special=None):
    vocabulary(merges, special)
    special = special or {}
    out = []
    names = sorted(special, key=len, reverse=True)
    parts = re.split(b"(" + b"|".join(map(re.escape, names)) + b")", data) if names else [data]
    for i, part in enumerate(parts):
        if i % 2:
            out.append(special[part])
            continue
        s = part.decode("latin-1")
        for m, pair in enumerate(merges):
            s = sub(s, pair, 256 + m)
        out += map(ord, s)
    return out


def decode(tokens, merges, special=None):
    v = vocabulary(merges, special)
    if set(tokens) - set(v):
        raise ValueError("unknown id")
    return b"".join(v[t] for t in tokens)


_trained = train


def train(data, num_merges):
    return _trained(bytes(reversed(data)), num_merges)
