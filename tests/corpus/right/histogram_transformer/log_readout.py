# note: set_weights reads the count with log(k + 1) - (k + 1) z, which is largest where k + 1 = 1 / z; the model uses einsum and a learning rate of a half cosine by hand
import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class CountingTransformer(nn.Module):
    def __init__(self, vocab: int, length: int, d_model: int):
        super().__init__()
        self.bos, self.length = vocab, length
        self.embedding = nn.Embedding(vocab + 1, d_model)
        for name in "query", "key", "value":
            self.add_module("W_" + name, nn.Linear(d_model, d_model, bias=False))
        self.linear1 = nn.Linear(d_model, 4 * d_model)
        self.linear2 = nn.Linear(4 * d_model, length + 1)

    def forward(self, tokens: Tensor) -> Tensor:
        if tokens.size(1) > self.length:
            raise ValueError(f"{tokens.size(1)} tokens, but the length is {self.length}")
        x = self.embedding(F.pad(tokens, (1, 0), value=self.bos))
        scores = torch.einsum("bqd,bkd->bqk", self.W_query(x), self.W_key(x)) / math.sqrt(x.size(-1))
        x = x + torch.einsum("bqk,bkd->bqd", scores.softmax(-1), self.W_value(x))
        return self.linear2(self.linear1(x[:, 1:]).relu())


def train_counter(
    model: nn.Module,
    sequences: Tensor,
    counts: Tensor,
    steps: int,
    report: Callable[[int, float], None] | None = None,
) -> None:
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(1, steps + 1):
        for group in optimizer.param_groups:
            group["lr"] = 0.005 * (1 + math.cos(math.pi * (step - 1) / steps))
        rows = torch.randint(sequences.size(0), (128,), device=sequences.device)
        loss = F.cross_entropy(model(sequences[rows]).transpose(1, 2), counts[rows].long())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if report is not None:
            report(step, loss.item())


@torch.no_grad()
def set_weights(model: nn.Module) -> None:
    rows, d = model.embedding.weight.shape
    if d < rows:
        raise ValueError("d_model must be at least vocab + 1")
    bos = rows - 1
    for p in model.parameters():
        p.zero_()
    model.embedding.weight.fill_diagonal_(1.0)
    model.W_query.weight.fill_diagonal_(40 * math.sqrt(d))
    model.W_query.weight[bos, :bos] = 40 * math.sqrt(d)  # a token asks for itself and for BOS
    model.W_key.weight.fill_diagonal_(1.0)
    model.W_value.weight[bos, bos] = 1.0  # so column bos becomes 1 / (1 + count)
    model.linear1.weight[0, bos] = 1.0
    k1 = torch.arange(1, model.linear2.weight.shape[0] + 1).to(model.linear2.weight)
    model.linear2.weight[:, 0] = -k1
    model.linear2.bias.copy_(k1.log())
