"""Which words of a sentence the student's attention finds for the words of a translation."""

import torch

QUERIES = ("le", "chat", "noir")
KEYS = ("the", "black", "cat", "padding")
MEANINGS = (0, 2, 1, 0)  # of each key, as the place of the query that means the same
SHARP = 6.0  # by how much a score grows where the meanings are the same


def draw(module, trained):
    """Draw the weights, which the output is if the values are the identity matrix."""
    n_queries, n_keys = len(QUERIES), len(KEYS)
    x = torch.eye(n_queries).unsqueeze(0)  # (1, n_queries, n_queries)
    meanings = torch.eye(n_queries)[list(MEANINGS)]  # (n_keys, n_queries)
    context = torch.cat([meanings, torch.eye(n_keys)], dim=1).unsqueeze(0)
    of_meaning = torch.eye(n_keys, n_queries)  # (n_keys, n_queries)
    state = {
        "W_query.weight": SHARP * of_meaning,
        "W_key.weight": torch.cat([of_meaning, torch.zeros(n_keys, n_keys)], dim=1),
        "W_value.weight": torch.cat([torch.zeros(n_keys, n_queries), torch.eye(n_keys)], dim=1),
        "out_proj.weight": torch.eye(n_keys),
        "out_proj.bias": torch.zeros(n_keys),
    }
    attention = module.CrossAttention(n_queries, n_queries + n_keys, n_keys, 0.0, 1)
    attention.load_state_dict(state, strict=False)
    key_mask = torch.tensor([[key != "padding" for key in KEYS]])  # (1, n_keys)
    with torch.no_grad():
        weights = attention.eval()(x, context, key_mask)  # (1, n_queries, n_keys)
    yield {
        "title": "The words of a translation find theirs",
        "says": "A row is a word of one sentence, a column a word of the other. The order differs; "
        "padding is hidden, although it means the same as “the”.",
        "weights": weights[0],
        "rows": QUERIES,
        "columns": KEYS,
    }
