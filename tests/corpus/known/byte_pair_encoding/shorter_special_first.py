# mistake: shorter_special_first
# Special tokens are tried in the order of the dict, so a shorter one can win over a longer one that begins there.
import re
from collections import Counter

Pair = tuple[int, int]


def merged(tokens: list[int], pair: Pair, new: int) -> list[int]:
    text = "".join(map(chr, tokens)).replace(chr(pair[0]) + chr(pair[1]), chr(new))
    return list(map(ord, text))


def train(data: bytes, num_merges: int) -> list[Pair]:
    text, pairs = data.decode("latin-1"), []
    for new in range(256, 256 + num_merges):
        counts = Counter(text[i : i + 2] for i in range(len(text) - 1))
        if not counts:
            break
        ranked = sorted(counts, key=lambda two: (-counts[two], two))
        if counts[ranked[0]] == 1:
            break
        text = text.replace(ranked[0], chr(new))
        pairs.append((ord(ranked[0][0]), ord(ranked[0][1])))
    return pairs


def encode(data: bytes, merges: list[Pair], special: dict[bytes, int] | None = None) -> list[int]:
    special = dict(special or {})
    if not {*special.values()}.isdisjoint(range(256 + len(merges))):
        raise ValueError("special ids have to be new")

    def without_special(piece: bytes) -> list[int]:
        text = piece.decode("latin-1")
        for m, (a, b) in enumerate(merges, start=256):
            text = text.replace(chr(a) + chr(b), chr(m))
        return [ord(c) for c in text]

    if not special:
        return without_special(data)
    tokens, end = [], 0
    for match in re.finditer(b"|".join(map(re.escape, special)), data):
        tokens.extend(without_special(data[end : match.start()]))
        tokens.append(special[match.group()])
        end = match.end()
    tokens.extend(without_special(data[end:]))
    return tokens


def decode(tokens: list[int], merges: list[Pair], special: dict[bytes, int] | None = None) -> bytes:
    texts = {token: text for text, token in (special or {}).items()}

    def text_of(token: int) -> bytes:
        if token not in texts:
            if token in range(256):
                texts[token] = token.to_bytes(1, "big")
            elif token in range(256, 256 + len(merges)):
                texts[token] = b"".join(text_of(part) for part in merges[token - 256])
            else:
                raise ValueError(f"no token {token}")
        return texts[token]

    return b"".join(text_of(token) for token in tokens)
