# mistake: leftmost_pair_first
from collections import Counter
from itertools import pairwise


def smallest_most_frequent(tokens):
    counts = Counter(pairwise(tokens))
    if not counts:
        return None
    pair = min(counts, key=lambda pair: (-counts[pair], pair))
    return pair if counts[pair] > 1 else None


def replace(tokens, pair, new):
    result = []
    for token in tokens:
        result.append(token)
    i = 0
    out = []
    while i < len(result):
        if tuple(result[i : i + 2]) == tuple(pair):
            out.append(new)
            i += 2
        else:
            out.append(result[i])
            i += 1
    return out


def train(data, num_merges):
    tokens, merges = list(data), []
    while len(merges) < num_merges:
        pair = smallest_most_frequent(tokens)
        if pair is None:
            break
        tokens = replace(tokens, pair, 256 + len(merges))
        merges.append(pair)
    return merges


def check(merges, special):
    ids = list(special.values())
    if any(0 <= number < 256 + len(merges) for number in ids) or len(set(ids)) < len(ids):
        raise ValueError("two tokens share an id")


def encode(data, merges, special=None):
    special = special or {}
    check(merges, special)
    names = sorted(special, key=len, reverse=True)
    result, piece, i = [], [], 0

    def flush():
        tokens = list(piece)
        ranks = {tuple(pair): rank for rank, pair in enumerate(merges)}
        k = 0
        while k < len(tokens) - 1:
            rank = ranks.get((tokens[k], tokens[k + 1]))
            if rank is None:
                k += 1
            else:
                tokens[k : k + 2] = [256 + rank]
                k = 0
        result.extend(tokens)
        piece.clear()

    while i < len(data):
        for name in names:
            if name and data.startswith(name, i):
                flush()
                result.append(special[name])
                i += len(name)
                break
        else:
            piece.append(data[i])
            i += 1
    flush()
    return result


def decode(tokens, merges, special=None):
    special = special or {}
    check(merges, special)
    table = {i: bytes([i]) for i in range(256)}
    for i, (a, b) in enumerate(merges):
        table[256 + i] = table[a] + table[b]
    table.update({number: name for name, number in special.items()})
    try:
        return b"".join(table[token] for token in tokens)
    except KeyError as error:
        raise ValueError(f"no token has the id {error}") from None
