# mistake: train_counter makes `steps` passes over all sequences in batches, and not `steps` updates, with one report after each pass
import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class CountingTransformer(nn.Module):
    def __init__(self, vocab: int, length: int, d_model: int):
        super().__init__()
        self.vocab, self.length = vocab, length
        self.embedding = nn.Embedding(vocab + 1, d_model)
        self.W_query = nn.Linear(d_model, d_model, bias=False)
        self.W_key = nn.Linear(d_model, d_model, bias=False)
        self.W_value = nn.Linear(d_model, d_model, bias=False)
        self.linear1 = nn.Linear(d_model, 4 * d_model)
        self.linear2 = nn.Linear(4 * d_model, length + 1)
        self.scale = math.sqrt(d_model)

    def forward(self, tokens: Tensor) -> Tensor:
        if tokens.shape[1] > self.length:
            raise ValueError("tokens are more than length")
        x = self.embedding(F.pad(tokens, (1, 0), value=self.vocab))
        weights = F.softmax(self.W_query(x) @ self.W_key(x).mT / self.scale, dim=-1)
        x = x + weights @ self.W_value(x)
        return self.linear2(self.linear1(x).relu())[:, 1:]


def train_counter(model, sequences: Tensor, counts: Tensor, steps: int, report=None) -> None:
    if steps < 1:
        return
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for step in range(1, steps + 1):
        total, n = 0.0, 0
        for batch in torch.randperm(len(sequences)).split(128):
            loss = F.cross_entropy(model(sequences[batch]).flatten(0, 1), counts[batch].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total, n = total + loss.item(), n + 1
        schedule.step()
        if report is not None:
            report(step, total / n)


def set_weights(model) -> None:
    v, d = model.vocab, model.embedding.embedding_dim
    if d < v + 1:
        raise ValueError(f"d_model must be {v + 1} or more")
    with torch.no_grad():
        for p in model.parameters():
            p.fill_(0)
        for w in (model.embedding.weight, model.W_key.weight):
            w.fill_diagonal_(1)
        model.W_query.weight.fill_diagonal_(40 * model.scale)
        model.W_query.weight[v, :v] = 40 * model.scale
        model.W_value.weight[v, v] = 1
        model.linear1.weight[0, v] = 1
        k = torch.arange(1, model.length + 2, dtype=torch.float32)
        model.linear2.weight[:, 0] = -k
        model.linear2.bias[:] = k.log()
