"""What a tiny Llama writes after its training, and how well it predicts other notes."""

import torch

SIZES = (288, 64, 4, 2, 2, 64, 0.1)
MERGES = [
    *((101, 32), (104, 256), (32, 116), (258, 257), (32, 97), (101, 114), (46, 10), (105, 110)),
    *((100, 259), (97, 114), (100, 32), (32, 115), (111, 114), (32, 119), (260, 110), (105, 108)),
    *((114, 111), (84, 257), (32, 102), (262, 273), (46, 32), (101, 116), (101, 110), (97, 121)),
    *((111, 111), (270, 266), (32, 98), (117, 110), (99, 97), (97, 263), (97, 105), (111, 102)),
]  # learned from nine tenths of the notes
PROMPT = 262  # the end of a line
NEW = b"""\
Sunday, 9 August. Fog until noon.
The teacher carried a soft pillow near the garden.
"I would rather have an old kite than a tiny brush," said the cook.
The nurse gave 7 coins for a golden comb and 11 for pears.
12 people came to see the empty stable of the mayor.
"""


def draw(module, trained):
    """Draw three texts of the trained model, and the bits per byte of notes that are new."""
    model = trained("notes", lambda: module.TinyLlama(*SIZES))
    if model is None:
        return
    bits = module.bits_per_byte(model, NEW, MERGES)
    uniforms = torch.rand(3, SIZES[5], generator=torch.Generator().manual_seed(1)) * 0.999
    prompt = torch.tensor([PROMPT])
    texts = [module.continue_text(model, prompt, each, 0.7).tolist()[1:] for each in uniforms]
    yield {
        "title": "What the model writes",
        "says": "Three texts, drawn at temperature 0.7. Five lines of other notes, which the model "
        f"has not read, take {bits:.2f} bits per byte.",
        "text": "\n\n".join(decoded(each) for each in texts),
    }


def decoded(tokens):
    """Return the text of tokens, whose bytes may end within a character."""
    table = [bytes([byte]) for byte in range(256)]
    for first, second in MERGES:
        table.append(table[first] + table[second])
    return b"".join(table[token] for token in tokens).decode(errors="replace")
