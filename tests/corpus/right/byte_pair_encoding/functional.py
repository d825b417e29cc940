# right: functional style
from functools import reduce
from operator import itemgetter


def _step(state, token, pair, new):
    done, waiting = state
    if waiting is not None and (waiting, token) == pair:
        return done + [new], None
    return (done if waiting is None else done + [waiting]), token


def _merge(tokens, pair, new):
    done, waiting = reduce(lambda state, token: _step(state, token, tuple(pair), new), tokens, ([], None))
    return done if waiting is None else done + [waiting]


def _best(tokens):
    pairs = sorted(zip(tokens[:-1], tokens[1:]))
    runs = []
    for pair in pairs:
        if runs and runs[-1][0] == pair:
            runs[-1][1] += 1
        else:
            runs.append([pair, 1])
    return max(runs, key=itemgetter(1), default=[None, 0])


def train(data, num_merges, tokens=None, merges=()):
    tokens = list(data) if tokens is None else tokens
    if len(merges) >= num_merges:
        return list(merges)
    pair, count = _best(tokens)
    if count < 2:
        return list(merges)
    return train(data, num_merges, _merge(tokens, pair, 256 + len(merges)), (*merges, pair))


def _checked(merges, special):
    special = special or {}
    ids = [*range(256 + len(merges)), *special.values()]
    if len(ids) != len(set(ids)):
        raise ValueError("colliding ids")
    return special


def encode(data, merges, special=None):
    special = _checked(merges, special)
    starts = [(i, name) for i in range(len(data)) for name in special if name and data.startswith(name, i)]
    starts.sort(key=lambda hit: (hit[0], -len(hit[1])))
    end, out = 0, []

    def plain(piece):
        return reduce(lambda tokens, m: _merge(tokens, merges[m], 256 + m), range(len(merges)), list(piece))

    for start, name in starts:
        if start < end:
            continue
        out += [*plain(data[end:start]), special[name]]
        end = start + len(name)
    return out + plain(data[end:])


def decode(tokens, merges, special=None):
    special = _checked(merges, special)
    words = reduce(lambda words, pair: [*words, words[pair[0]] + words[pair[1]]], merges, [bytes([i]) for i in range(256)])
    known = {**dict(enumerate(words)), **{i: name for name, i in special.items()}}
    unknown = [token for token in tokens if token not in known]
    if unknown:
        raise ValueError(f"unknown: {unknown}")
    return b"".join(map(known.get, tokens))
