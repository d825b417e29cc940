r"""# Byte pair encoding

A model reads numbers, a text is made of bytes. Each of the 256 bytes is a
token, so that no text is impossible; but then a text has many tokens. So the
pair of neighbours that is most frequent becomes one new token, and then the
next pair, and so on. A list of these pairs is all that a tokenizer learns.

This exercise is plain Python, without tensors.

Write

    train(data, num_merges)
    encode(data, merges, special=None)
    decode(tokens, merges, special=None)

    data         bytes                 any bytes, not only text
    num_merges   an int                0 or more
    merges       a list of pairs       as `train` returns it
    special      a dict, or None       bytes (not empty) to the id of the token
    tokens       a list of ints
    train        returns a list of tuples of two ints
    encode       returns a list of ints
    decode       returns bytes

Tokens 0 to 255 are the bytes. Pair number m of the list, from 0, is merged
into the token 256 + m.

train
  - It begins with the bytes of data, and repeats: count all pairs of
    neighbouring tokens; the most frequent pair is the next one of the list;
    merge it everywhere.
  - Every two neighbouring positions count, also if they overlap: in `aaa`, the
    pair (97, 97) is there twice.
  - If several pairs are equally frequent, the smallest one is taken, as tuples
    of ids are compared: (97, 300) before (98, 97).
  - Merging runs from left to right: `aaa` becomes [256, 97].
  - Pairs may contain any bytes: there is no splitting into words.
  - It ends early if no pair is there at least twice.

encode
  - It merges as the training did: of all pairs of the list that are somewhere
    in the tokens, the earliest one of the list is merged everywhere, from left
    to right, until there is none left. So the text of the training gives the
    tokens with which the training ended.
  - Wherever the bytes of a special token are in data, they become its id. The
    leftmost place counts first; of several special tokens that begin there,
    the longest. Nothing is merged with a special token, nor across it, nor
    within it.
  - Without `special`, or with an empty one, there are no special tokens.
  - The id of a special token must not belong to a byte or to a merge; else
    encode raises ValueError.

decode
  - It returns the bytes of all tokens, one after the other: those of a merge
    are those of its pair, and those of a special token are its text.
  - decode(encode(data, merges, special), merges, special) is data, for any
    bytes.
  - A token that is no byte, no merge and no special token is refused with
    ValueError, such as -1.

No argument is modified. Tokenizers of other packages are not allowed.

Example

    train(b"aaabdaaabac", 3)  = [(97, 97), (97, 98), (256, 257)]
    encode(b"aaabdaaabac", …) = [258, 100, 258, 97, 99]

    encode(b"abc", [(98, 99), (97, 98)]) = [97, 256]
        the pair (98, 99) is earlier in the list than (97, 98)

    encode(b"ab<e>ab", [(97, 98)], {b"<e>": 257}) = [256, 257, 256]
    decode([256, 257, 97], [(97, 98)], {b"<e>": 257}) = b"ab<e>a"

Write it by hand. These names are not accepted here: tiktoken, tokenizers,
sentencepiece, transformers, unique_consecutive.

What is new: The tokens themselves: a vocabulary that is learned before the
model is.

From: Neural Machine Translation of Rare Words with Subword Units (2016)
"""

import re
from collections import Counter
from itertools import pairwise

Pair = tuple[int, int]


def merged(tokens: list[int], pair: Pair, new: int) -> list[int]:
    """Return tokens with every occurrence of pair, from left to right, replaced by new."""
    raise NotImplementedError("fill in byte_pair_encoding")


def train(data: bytes, num_merges: int) -> list[Pair]:
    """Return the pairs that are merged, at most num_merges; number m becomes token 256 + m."""
    raise NotImplementedError("fill in byte_pair_encoding")


def encode(data: bytes, merges: list[Pair], special: dict[bytes, int] | None = None) -> list[int]:
    """Return the tokens of data, with the ids of special for the bytes that it names.

    Raises ValueError if an id of special belongs to a byte or to a merge.
    """
    raise NotImplementedError("fill in byte_pair_encoding")


def decode(tokens: list[int], merges: list[Pair], special: dict[bytes, int] | None = None) -> bytes:
    """Return the bytes of all tokens. Raises ValueError for a token that nothing belongs to."""
    raise NotImplementedError("fill in byte_pair_encoding")
