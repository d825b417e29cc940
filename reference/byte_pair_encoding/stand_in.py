"""Stand-in for byte pair encoding: the same contract, with torch's own counts of the pairs."""

from itertools import pairwise

import torch

BYTES = [bytes([byte]) for byte in range(256)]


def train(data, num_merges):
    """Return at most num_merges pairs; number m becomes token 256 + m."""
    tokens, merges = list(data), []
    for new in range(256, 256 + num_merges):
        row = torch.tensor(tokens)  # (n_tokens,)
        pairs = torch.stack([row[:-1], row[1:]], dim=1)  # (n_tokens - 1, 2)
        # in ascending order, so the first of equal counts is the smallest pair
        ordered = (pairs[:, 0] * 2**31 + pairs[:, 1]).sort().values  # (n_tokens - 1,)
        found, counts = torch.unique_consecutive(ordered, return_counts=True)  # (n_pairs,) each
        if not len(found) or counts.max() < 2:
            break
        pair = divmod(int(found[(counts == counts.max()).nonzero()[0]]), 2**31)
        merges.append(pair)
        tokens = _merged(tokens, {pair: new})
    return merges


def _merged(tokens, ranks):
    """Return tokens after all merges: the pair of the lowest new token first."""
    while True:
        known = [ranks[pair] for pair in pairwise(tokens) if pair in ranks]
        if not known:
            return tokens
        new, output = min(known), []
        for token in tokens:
            # nothing merges with a token that is new itself: its id is above those of the pair
            if output and ranks.get((output[-1], token)) == new:
                output[-1] = new
            else:
                output.append(token)
        tokens = output


def encode(data, merges, special=None):
    """Return the tokens of data, with the ids of special for the bytes that it names."""
    special = special or {}
    if any(0 <= token < 256 + len(merges) for token in special.values()):
        raise ValueError("the id of a special token belongs to a byte or to a merge")
    ranks = {tuple(pair): 256 + number for number, pair in enumerate(merges)}
    output, start, place = [], 0, 0
    while place < len(data):
        here = [text for text in special if data.startswith(text, place)]
        if not here:
            place += 1
            continue
        text = max(here, key=len)
        output += [*_merged(list(data[start:place]), ranks), special[text]]
        start = place = place + len(text)
    return output + _merged(list(data[start:]), ranks)


def decode(tokens, merges, special=None):
    """Return the bytes of all tokens."""
    texts = {token: text for text, token in (special or {}).items()}
    parts = list(BYTES)
    for first, second in merges:
        parts.append(parts[first] + parts[second])
    if any(token not in texts and not 0 <= token < len(parts) for token in tokens):
        raise ValueError("there is no such token")
    return b"".join(texts[token] if token in texts else parts[token] for token in tokens)
