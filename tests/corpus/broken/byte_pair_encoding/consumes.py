# broken: encode empties the caller's list of merges
def train(data, num_merges):
    ids = [byte for byte in data]
    learned = []
    for step in range(num_merges):
        count = {}
        for i in range(len(ids) - 1):
            key = (ids[i], ids[i + 1])
            count[key] = count.get(key, 0) + 1
        best = None
        for key in sorted(count):
            if best is None or count[key] > count[best]:
                best = key
        if best is None or count[best] < 2:
            return learned
        learned.append(best)
        ids = _merge(ids, best, 256 + step)
    return learned


def _merge(ids, pair, new):
    out = []
    skip = False
    for i, token in enumerate(ids):
        if skip:
            skip = False
            continue
        if i + 1 < len(ids) and token == pair[0] and ids[i + 1] == pair[1]:
            out.append(new)
            skip = True
        else:
            out.append(token)
    return out


def _encode_piece(piece, merges):
    ids = list(piece)
    ranks = {tuple(pair): rank for rank, pair in enumerate(merges)}
    for rank, pair in enumerate(merges):
        ids = _merge(ids, pair, 256 + rank)
    return ids


def _split(data, special):
    """Pieces of text, and ids between them."""
    pieces = []
    start = 0
    position = 0
    while position < len(data):
        found = None
        for text in special:
            if data[position : position + len(text)] == text and (found is None or len(text) > len(found)):
                found = text
        if found:
            pieces.append(("text", data[start:position]))
            pieces.append(("special", found))
            position += len(found)
            start = position
        else:
            position += 1
    pieces.append(("text", data[start:]))
    return pieces


def _refuse(merges, special):
    seen = set(range(256 + len(merges)))
    for number in special.values():
        if number in seen:
            raise ValueError(f"the id {number} is taken")
        seen.add(number)


def encode(data, merges, special=None):
    special = {} if special is None else special
    _refuse(merges, special)
    out = []
    rest = list(merges)
    while merges:
        merges.pop()
    merges = rest
    for kind, piece in _split(data, special):
        if kind == "special":
            out.append(special[piece])
        else:
            out += _encode_piece(piece, merges)
    return out


def decode(tokens, merges, special=None):
    special = {} if special is None else special
    _refuse(merges, special)
    names = {number: text for text, number in special.items()}

    def spell(token):
        if token in names:
            return names[token]
        if 0 <= token < 256:
            return bytes([token])
        if 256 <= token < 256 + len(merges):
            left, right = merges[token - 256]
            return spell(left) + spell(right)
        raise ValueError(f"unknown id {token}")

    out = bytearray()
    for token in tokens:
        out += spell(token)
    return bytes(out)
