"""How a sentence falls apart into fewer and fewer tokens, the more pairs are merged."""

TEXT = "the cat and the hat sat on the mat, and the rat sat on the cat"
SENTENCE = "the cat sat on the mat"
MERGES = (0, 3, 6, 12)


def draw(module, trained):
    """Draw the sentence after some merges, with a bar between two tokens."""
    lines = []
    for count in MERGES:
        merges = module.train(TEXT.encode(), count)
        tokens = module.encode(SENTENCE.encode(), merges)
        pieces = [module.decode([token], merges).decode() for token in tokens]
        lines.append(f"{count:>2} merges, {len(tokens):>2} tokens: {'|'.join(pieces)}")
    yield {
        "title": "A sentence as tokens",
        "says": "The merges were learned from a text about a cat, a hat, a mat and a rat.",
        "text": "\n".join(lines),
    }
