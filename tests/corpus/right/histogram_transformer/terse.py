"""A counting transformer whose weights by hand are slices of unit matrices."""

import torch
from torch import nn
from torch.nn.functional import cross_entropy


class CountingTransformer(nn.Module):
    def __init__(self, vocab, length, d_model):
        super().__init__()
        self.sizes = vocab, length, d_model
        self.embedding = nn.Embedding(vocab + 1, d_model)
        for name in ("W_query", "W_key", "W_value"):
            self.add_module(name, nn.Linear(d_model, d_model, bias=False))
        self.linear1, self.linear2 = nn.Linear(d_model, 4 * d_model), nn.Linear(4 * d_model, length + 1)

    def forward(self, tokens):
        if tokens.shape[1] > self.sizes[1]:
            raise ValueError("too many tokens")
        both = torch.cat([torch.full_like(tokens[:, :1], self.sizes[0]), tokens], 1)
        keys, x = self.embedding(both), self.embedding(tokens)  # no row for BOS as a query
        w = (self.W_query(x) @ self.W_key(keys).mT * self.sizes[2] ** -0.5).softmax(-1)
        return self.linear2(self.linear1(x + w @ self.W_value(keys)).clamp(min=0))


def train_counter(model, sequences, counts, steps, report=None):
    o = torch.optim.Adam(model.parameters(), lr=0.01)
    for i in range(steps):
        o.param_groups[0]["lr"] = 0.01 * (1 - i / steps)
        rows = torch.randint(len(sequences), (128,))
        loss = cross_entropy(model(sequences[rows]).mT, counts[rows])
        model.zero_grad()
        loss.backward()
        o.step()
        report and report(i + 1, loss.item())


def set_weights(model):
    v, length, d = model.sizes
    if d <= v:
        raise ValueError(d)
    a = 1 / torch.arange(1.0, length + 2)
    state = {name: torch.zeros_like(p) for name, p in model.state_dict().items()}
    state["embedding.weight"] = torch.eye(v + 1, d)
    state["W_key.weight"] = torch.eye(d)
    state["W_query.weight"] = torch.eye(d) * 90 * d**0.5
    state["W_query.weight"][v] = 90 * d**0.5
    state["W_value.weight"][v, v] = state["linear1.weight"][0, v] = 1
    state["linear2.weight"][:, 0], state["linear2.bias"] = 2 * a, -a * a
    model.load_state_dict(state)
