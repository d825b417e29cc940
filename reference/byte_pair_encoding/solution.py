"""Reference solution: byte pair encoding."""

import re
from collections import Counter
from itertools import pairwise

Pair = tuple[int, int]


def merged(tokens: list[int], pair: Pair, new: int) -> list[int]:
    """Return tokens with every occurrence of pair, from left to right, replaced by new."""
    # --- solution
    output, place = [], 0
    while place < len(tokens):
        found = tuple(tokens[place : place + 2]) == pair
        output.append(new if found else tokens[place])
        place += 2 if found else 1
    return output
    # --- end


def train(data: bytes, num_merges: int) -> list[Pair]:
    """Return the pairs that are merged, at most num_merges; number m becomes token 256 + m."""
    # --- solution
    tokens, merges = list(data), []
    for new in range(256, 256 + num_merges):
        counts = Counter(pairwise(tokens))
        # the highest count, and of equal ones the smallest pair
        best = min(counts, key=lambda pair: (-counts[pair], pair), default=None)
        if counts[best] < 2:
            break
        merges.append(best)
        tokens = merged(tokens, best, new)
    return merges
    # --- end


def encode(data: bytes, merges: list[Pair], special: dict[bytes, int] | None = None) -> list[int]:
    """Return the tokens of data, with the ids of special for the bytes that it names.

    Raises ValueError if an id of special belongs to a byte or to a merge.
    """
    # --- solution
    special = special or {}
    if any(0 <= token < 256 + len(merges) for token in special.values()):
        raise ValueError("the id of a special token belongs to a byte or to a merge")
    longest_first = sorted(special, key=len, reverse=True)
    pattern = b"|".join(map(re.escape, longest_first))
    # the group keeps the special tokens: they are every second part
    parts = re.split(b"(" + pattern + b")", data) if special else [data]
    output = []
    for place, part in enumerate(parts):
        tokens = [special[part]] if place % 2 else list(part)
        for number, pair in enumerate(merges):
            tokens = merged(tokens, pair, 256 + number)
        output += tokens
    return output
    # --- end


def decode(tokens: list[int], merges: list[Pair], special: dict[bytes, int] | None = None) -> bytes:
    """Return the bytes of all tokens. Raises ValueError for a token that nothing belongs to."""
    # --- solution
    table = {byte: bytes([byte]) for byte in range(256)}
    for number, (first, second) in enumerate(merges):
        table[256 + number] = table[first] + table[second]
    for text, token in (special or {}).items():
        table[token] = text
    for token in tokens:
        if token not in table:
            raise ValueError(f"there is no token {token}")
    return b"".join(table[token] for token in tokens)
    # --- end
