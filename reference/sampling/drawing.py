"""What temperature, top-k and top-p leave of one row of scores."""

import torch

WORDS = ("mat", "sofa", "roof", "moon", "idea", "of")
SCORES = (3.0, 2.4, 1.6, 0.6, -0.4, -1.5)
WAYS = {
    "as it is": {},
    "temp. 0.5": {"temperature": 0.5},
    "temp. 2": {"temperature": 2.0},
    "top-k 3": {"top_k": 3},
    "top-p 0.8": {"top_p": 0.8},
}


def draw(module, trained):
    """Draw a row of probabilities for each way."""
    logits = torch.tensor(SCORES)  # (n_words,)
    rows = [module.distribution(logits, **options) for options in WAYS.values()]
    yield {
        "title": "The next word after “the cat sat on the”",
        "says": "A row is a way to choose, a column a word: the stronger the colour, the more "
        "probable. Low temperatures sharpen; top-k and top-p leave nothing of the last words.",
        "weights": torch.stack(rows),  # (n_ways, n_words)
        "rows": WAYS,
        "columns": WORDS,
    }
