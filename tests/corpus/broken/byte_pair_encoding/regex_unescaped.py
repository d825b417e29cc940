# broken: The special tokens go into the regular expression without re.escape, so <|end|> is read as alternatives.
import re


def get_stats(ids):
    counts = {}
    for pair in zip(ids, ids[1:]):
        counts[pair] = counts.get(pair, 0) + 1
    return counts


def merged(ids, pair, idx):
    newids = []
    i = 0
    while i < len(ids):
        if ids[i] == pair[0] and i < len(ids) - 1 and ids[i + 1] == pair[1]:
            newids.append(idx)
            i += 2
        else:
            newids.append(ids[i])
            i += 1
    return newids


def train(data, num_merges):
    ids = list(data)
    merges = []
    for i in range(num_merges):
        stats = get_stats(ids)
        if not stats:
            break
        pair = min(stats, key=lambda p: (-stats[p], p))
        if stats[pair] < 2:
            break
        ids = merged(ids, pair, 256 + i)
        merges.append(pair)
    return merges


def encode_chunk(chunk, ranks):
    ids = list(chunk)
    while len(ids) >= 2:
        stats = get_stats(ids)
        pair = min(stats, key=lambda p: ranks.get(p, float("inf")))
        if pair not in ranks:
            break
        ids = merged(ids, pair, ranks[pair])
    return ids


def encode(data, merges, special=None):
    special = special or {}
    for idx in special.values():
        if 0 <= idx < 256 + len(merges):
            raise ValueError(f"the id {idx} is taken")
    ranks = {}
    for i, pair in enumerate(merges):
        ranks.setdefault(tuple(pair), 256 + i)
    if not special:
        return encode_chunk(data, ranks)
    longest_first = sorted(special, key=len, reverse=True)
    pattern = b"(" + b"|".join(longest_first) + b")"
    ids = []
    for part in re.split(pattern, data):
        if part in special:
            ids.append(special[part])
        else:
            ids.extend(encode_chunk(part, ranks))
    return ids


def decode(tokens, merges, special=None):
    vocab = {idx: bytes([idx]) for idx in range(256)}
    for i, (p0, p1) in enumerate(merges):
        vocab[256 + i] = vocab[p0] + vocab[p1]
    vocab.update({v: k for k, v in (special or {}).items()})
    for token in tokens:
        if token not in vocab:
            raise ValueError(f"invalid token id: {token}")
    return b"".join(vocab[token] for token in tokens)
