# right: tokenizer class style
class Tokenizer:
    def __init__(self, merges, special=None):
        self.merges = [tuple(pair) for pair in merges]
        self.special = dict(special or {})
        self.spelling = {i: bytes([i]) for i in range(256)}
        for i, (left, right) in enumerate(self.merges):
            self.spelling[256 + i] = self.spelling[left] + self.spelling[right]
        for name, i in self.special.items():
            if i in self.spelling:
                raise ValueError(f"id {i} of {name!r} collides")
            self.spelling[i] = name
        self.rank = {pair: i for i, pair in enumerate(self.merges)}

    @staticmethod
    def merge(ids, pair, new):
        i = 0
        while i + 1 < len(ids):
            if (ids[i], ids[i + 1]) == pair:
                ids[i] = new
                del ids[i + 1]
            i += 1
        return ids

    def plain(self, data):
        ids = list(data)
        while True:
            pairs = [pair for pair in zip(ids, ids[1:]) if pair in self.rank]
            if not pairs:
                return ids
            pair = min(pairs, key=self.rank.__getitem__)
            self.merge(ids, pair, 256 + self.rank[pair])

    def encode(self, data):
        hits = [(data.find(name), -len(name), name) for name in self.special if data.find(name) >= 0]
        if not hits:
            return self.plain(data)
        start, length, name = min(hits)
        return self.plain(data[:start]) + [self.special[name]] + self.encode(data[start - length :])

    def decode(self, ids):
        for i in ids:
            if i not in self.spelling:
                raise ValueError(f"unknown id {i}")
        return b"".join(self.spelling[i] for i in ids)


def train(data, num_merges):
    ids, merges = list(data), []
    for new in range(256, 256 + num_merges):
        counts = {}
        for pair in zip(ids, ids[1:]):
            counts[pair] = counts.get(pair, 0) + 1
        if not counts or max(counts.values()) == 1:
            break
        top = max(counts.values())
        best = min(pair for pair, count in counts.items() if count == top)
        merges.append(best)
        Tokenizer.merge(ids, best, new)
    return merges


def encode(data, merges, special=None):
    return Tokenizer(merges, special).encode(data)


def decode(tokens, merges, special=None):
    return Tokenizer(merges, special).decode(tokens)
