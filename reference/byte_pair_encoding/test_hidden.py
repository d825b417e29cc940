"""The checks of byte pair encoding and their cases.

Texts are drawn, and lists become tensors of integers, so that ten of them can tell a mistake.
"""

import pytest
import torch

from grader.authors import (
    Aspect,
    Check,
    assert_written_by_hand,
    expect,
    often,
    refused,
    works,
    written,
)

TIES = Aspect("ties", "pairs that are equally frequent")
SPECIAL = Aspect("special tokens", "texts with special tokens")
SHORT = Aspect("short", "texts in which no pair is repeated", is_edge=True)
BYTES = Aspect("any bytes", "bytes that are no text")

pytestmark = pytest.mark.needs("test_written_by_hand")


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """No tokenizer of another package does the work."""

    def call():
        text = letters(rng, 3, 30)
        merges = student.train(text, 2)
        return student.decode(student.encode(text, merges), merges)

    assert_written_by_hand(student, call)


def letters(rng, count, length, among=range(97, 123)):
    """Return a text of `length` bytes, of `count` different ones at most."""
    chosen = [among[place] for place in rng.permutation(len(among))[:count]]
    return bytes(chosen[place] for place in rng.randint(0, count, length))


def distinct(rng, among=range(97, 123)):
    """Return a text in which no two pairs are equally frequent whenever one is merged.

    The words stand between bytes that occur once: only pairs within words are repeated.
    """
    a, b, c, d, e, f = (among[place] for place in rng.permutation(len(among))[:6])
    counts = {(a, b): 9, (a, b, c): 6, (d, e): 5, (a, b, c, d, e): 3, (f, f, f, f): 4}
    words = [word for word, count in counts.items() for _ in range(count)]
    ends = rng.permutation(128).add(128).tolist()
    return b"".join(bytes([*words[n], ends[n]]) for n in rng.permutation(len(words)))


def made_merges(rng, count, first=range(97, 101)):
    """Return merges that no training gave: each of two tokens that are there before it."""
    merges = []
    while len(merges) < count:
        known = [*first, *range(256, 256 + len(merges))]
        pair = tuple(known[place] for place in rng.randint(0, len(known), 2))
        merges += [pair] * (pair not in merges)
    return merges


def pairs(merges):
    """Return a list of pairs as a tensor, (n_merges, 2)."""
    right = isinstance(merges, list) and all(
        isinstance(pair, tuple) and len(pair) == 2 and all(isinstance(n, int) for n in pair)
        for pair in merges
    )
    expect(right, "the merges are not a list of tuples of two ints")
    return torch.tensor(merges, dtype=torch.int64).view(-1, 2)  # (n_merges, 2)


def ids(tokens):
    """Return a list of tokens as a tensor, (n_tokens,)."""
    right = isinstance(tokens, list) and all(isinstance(token, int) for token in tokens)
    expect(right, "the tokens are not a list of ints")
    return torch.tensor(tokens, dtype=torch.int64)


def numbers(data):
    """Return bytes as a tensor, (n_bytes,)."""
    expect(isinstance(data, bytes), "the output is not of type bytes")
    return torch.tensor(list(data), dtype=torch.int64)


def learned(make, num_merges, times=4):
    """Return a case: the merges of several texts, each drawn by `make(rng)`."""
    return lambda student, rng: [pairs(student.train(make(rng), num_merges)) for _ in range(times)]


def encoded(make, texts=None, count=7, times=4):
    """Return a case: the tokens of several texts, with merges and texts of special tokens."""

    def ask(student, rng):
        found = []
        for _ in range(times):
            given = [make(rng), made_merges(rng, count)]
            if texts is not None:
                given.append({text: 256 + count + 3 * n for n, text in enumerate(texts)})
            found.append(ids(student.encode(*given)))
        return found

    return ask


def some(rng, count=4, length=60):
    return letters(rng, count, length, range(97, 97 + count))


test_training = Check("The most frequent pair of neighbours is merged, again and again.", points=4)
training = test_training.case
training("Texts without ties.", learned(distinct, 6))
training("Words with spaces and commas.", learned(lambda rng: distinct(rng, b" ,'.1aeot"), 6))
training("Other texts without ties.", learned(distinct, 5, times=3), hidden=True)

test_ties = Check(
    "Of pairs that are equally frequent, the smallest is merged.", points=3, about=TIES
)
test_ties.case("Random texts of a few letters.", learned(lambda rng: letters(rng, 4, 50), 12))
test_ties.case(
    "Random texts of more letters.", learned(lambda rng: letters(rng, 9, 70), 15), hidden=True
)

test_end = Check("The training ends when no pair is there twice.", points=2, about=SHORT)
end = test_end.case
end("More merges than the texts have.", learned(distinct, 40))
end("Texts of one letter.", learned(lambda rng: letters(rng, 1, 37), 40))


@end
def nothing_repeated(student, rng):
    """Texts in which no pair, or one pair, is repeated."""
    once = letters(rng, 1, 2) + b"."
    texts = (b"", once[:1], once, bytes(rng.permutation(40).tolist()), once + once)
    return often(*(len(pairs(student.train(text, 5))) for text in texts))


end("Zero merges.", lambda student, rng: often(len(pairs(student.train(some(rng), 0)))))
end("Other texts to the end.", learned(lambda rng: letters(rng, 3, 25), 99), hidden=True)

test_encoding = Check("Merges are made in their order, each everywhere.", points=5)
encoding = test_encoding.case
encoding("Merges that were not learned from the text.", encoded(some))
encoding("Texts of two letters.", encoded(lambda rng: some(rng, 2, 50)))
encoding("More merges.", encoded(some, count=20))
encoding("No merges.", encoded(some, count=0), about="options")
encoding("Other texts and merges.", encoded(lambda rng: some(rng, 3, 90), count=11), hidden=True)


@encoding(about="options")
def text_of_the_training(student, rng):
    """The tokens of the text of the training, and how many tokens other texts have."""
    text = letters(rng, 5, 80, b"ab ,\n")
    merges = [(32, 97), (97, 98), (256, 97), (98, 98), (257, 44)]
    return [ids(student.encode(text, merges)), often(len(student.encode(b"", merges)))]


test_special = Check(
    "Special tokens are found first, the leftmost and longest, and never merged.",
    points=3,
    about=SPECIAL,
)
special = test_special.case
special("One special token.", encoded(some, [b"<e>", b"cb"]))
special("Special tokens that overlap.", encoded(some, [b"d", b"ab", b"abc", b"bca", b"cabda"]))
special(
    "Special tokens with signs.",
    encoded(lambda rng: letters(rng, 4, 60, b"a.|b"), [b".", b"a|b", b".."]),
)
special(
    "Other texts with special tokens.",
    encoded(lambda rng: some(rng, 3, 80), [b"bc", b"ca", b"cab"], count=12),
    hidden=True,
)
special("An empty dict.", encoded(some, []), about="options")

test_decoding = Check("Tokens are decoded to their bytes.", points=2)


def decoded(count, n_special=0, n_tokens=40):
    """Return a case: the bytes of random tokens."""

    def ask(student, rng):
        merges, least = made_merges(rng, count), 256 + count
        texts = [letters(rng, 3, 4) + b"%d" % number for number in range(n_special)]
        table = {text: least + 2 * number for number, text in enumerate(texts)}
        known = [*range(97, 101), *range(256, least), *table.values()]
        tokens = [known[place] for place in rng.randint(0, len(known), n_tokens)]
        return numbers(student.decode(tokens, merges, *([table] if n_special else [])))

    return ask


decoding = test_decoding.case
decoding("Random tokens.", decoded(6))
decoding("With special tokens.", decoded(4, 3), about=SPECIAL)
decoding("Without merges.", decoded(0))
decoding("Other tokens.", decoded(9), hidden=True)
decoding("Other special tokens.", decoded(3, 5), about=SPECIAL, hidden=True)

test_any_bytes = Check("Any bytes can be tokens, also if they are no text.", points=2, about=BYTES)


def there_and_back(among):
    """Return a case: merges, tokens and the way back of texts of these bytes."""

    def ask(student, rng):
        text = letters(rng, 6, 90, among) + bytes(rng.permutation(256).tolist())
        merges = student.train(text, 8)
        tokens = student.encode(text, merges)
        return pairs(merges), ids(tokens), numbers(student.decode(tokens, merges))

    return ask


test_any_bytes.case("Bytes above 127.", there_and_back(range(128, 256)))
test_any_bytes.case("Bytes below 128.", there_and_back(range(128)), hidden=True)


test_refusals = Check(
    "An id of a special token that is taken, and an unknown token, are refused.",
    points=2,
    about="refusals",
)
refusals = test_refusals.case
MERGES = [(97, 98), (256, 99)]
for taken in (97, 0, 255, 256, 257):
    refusals(
        f"A special token with the id {taken}.", refused("encode", b"abc", MERGES, {b"<e>": taken})
    )
for unknown in (258, -1, -200):
    refusals(f"The token {unknown}.", refused("decode", [97, unknown], MERGES))
refusals(
    "The id of the only merge.", refused("encode", b"ab", [(97, 97)], {b"#": 256}), hidden=True
)
refusals("A token far away.", refused("decode", [256, 5000], [(97, 97)]), hidden=True)


@refusals(about=SPECIAL)
def free_ids(student, rng):
    """Special tokens with the lowest free id, and with a very high one."""
    text = letters(rng, 2, 16, b"ab")
    return [ids(student.encode(text, MERGES, {b"ba": token})) for token in (258, 10**9)]


test_arguments = Check("No argument is modified.", points=2, about="writes")


@test_arguments.case
def arguments_afterwards(student, rng):
    """Whether merges, special tokens and tokens are the same after a call."""
    merges, table, tokens = made_merges(rng, 3), {b"<e>": 300, b"<": 301}, [97, 300, 98, 256]
    calls = (student.encode, b"a<e>b", merges, table), (student.decode, tokens, merges, table)
    return [often(works(lambda call=call: written(student, *call))) for call in calls]


@test_arguments.case(hidden=True)
def no_special_tokens(student, rng):
    """Whether merges and tokens are the same after calls without special tokens."""
    merges, tokens = made_merges(rng, 5), [98, 257, 97]
    calls = (student.encode, b"abba", merges), (student.decode, tokens, merges)
    return [often(works(lambda call=call: written(student, *call))) for call in calls]
