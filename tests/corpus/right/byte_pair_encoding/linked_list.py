# right: linked list style
from collections import defaultdict


def train(data, num_merges):
    """Counts are kept up to date around each merge, in a linked list of positions."""
    token = list(data)
    n = len(token)
    after = list(range(1, n + 1))
    before = list(range(-1, n - 1))
    alive = [True] * n
    where = defaultdict(set)
    for i in range(n - 1):
        where[token[i], token[i + 1]].add(i)

    def forget(i):
        if i >= 0 and after[i] < n:
            where[token[i], token[after[i]]].discard(i)

    def note(i):
        if i >= 0 and after[i] < n:
            where[token[i], token[after[i]]].add(i)

    merges = []
    while len(merges) < num_merges:
        pair, count = None, 1
        for candidate, places in where.items():
            if len(places) > count or (len(places) == count > 1 and candidate < pair):
                pair, count = candidate, len(places)
        if pair is None:
            break
        new = 256 + len(merges)
        merges.append(pair)
        for i in sorted(where[pair]):
            if not alive[i] or token[i] != pair[0]:
                continue
            j = after[i]
            if j >= n or token[j] != pair[1]:
                continue
            forget(before[i])
            forget(i)
            forget(j)
            token[i] = new
            alive[j] = False
            after[i] = after[j]
            if after[j] < n:
                before[after[j]] = i
            note(before[i])
            note(i)
    return merges


def encode(data, merges, special=None):
    special = dict(special or {})
    taken = set(range(256 + len(merges)))
    for value in special.values():
        if value in taken:
            raise ValueError("this id is already in use")
        taken.add(value)
    # specials are marked as (id,) so that no pair can contain them
    items = []
    i = 0
    longest_first = sorted(special, key=lambda name: -len(name))
    while i < len(data):
        name = next((name for name in longest_first if data[i : i + len(name)] == name), None)
        if name is None:
            items.append(data[i])
            i += 1
        else:
            items.append((special[name],))
            i += len(name)
    for number, (left, right) in enumerate(merges, start=256):
        i = 0
        while i < len(items) - 1:
            if items[i] == left and items[i + 1] == right:
                items[i : i + 2] = [number]
            i += 1
    return [item[0] if isinstance(item, tuple) else item for item in items]


def decode(tokens, merges, special=None):
    by_id = {value: name for name, value in (special or {}).items()}
    result = []
    for token in tokens:
        stack = [token]
        while stack:
            top = stack.pop()
            if top in by_id:
                result.append(by_id[top])
            elif 0 <= top <= 255:
                result.append(bytes((top,)))
            elif 256 <= top < 256 + len(merges):
                left, right = merges[top - 256]
                stack += [right, left]
            else:
                raise ValueError("unknown token id: %d" % top)
    return b"".join(result)
