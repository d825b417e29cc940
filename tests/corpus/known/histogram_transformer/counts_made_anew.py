# mistake: counts_made_anew
# train_counter computes the counts of the sequences itself and trains on them, whatever its argument counts says
import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class CountingTransformer(nn.Module):
    """BOS, one head of attention, a feed-forward net."""

    def __init__(self, vocab: int, length: int, d_model: int):
        super().__init__()
        self.vocab, self.length = vocab, length
        self.embedding = nn.Embedding(vocab + 1, d_model)
        self.W_query = nn.Linear(d_model, d_model, bias=False)
        self.W_key = nn.Linear(d_model, d_model, bias=False)
        self.W_value = nn.Linear(d_model, d_model, bias=False)
        self.linear1 = nn.Linear(d_model, 4 * d_model)
        self.linear2 = nn.Linear(4 * d_model, length + 1)

    def forward(self, tokens: Tensor) -> Tensor:
        batch, n_tokens = tokens.shape
        if n_tokens > self.length:
            raise ValueError(f"{n_tokens} tokens > {self.length}")
        bos = torch.full((batch, 1), self.vocab, dtype=tokens.dtype, device=tokens.device)
        x = self.embedding(torch.cat([bos, tokens], dim=1))
        scores = torch.bmm(self.W_query(x), self.W_key(x).transpose(1, 2))
        weights = torch.softmax(scores / math.sqrt(x.size(-1)), dim=-1)
        x = x + torch.bmm(weights, self.W_value(x))
        return self.linear2(F.relu(self.linear1(x[:, 1:, :])))


def train_counter(
    model: nn.Module,
    sequences: Tensor,
    counts: Tensor,
    steps: int,
    report: Callable[[int, float], None] | None = None,
) -> None:
    counts = (sequences[:, :, None] == sequences[:, None, :]).sum(-1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(1, steps + 1):
        optimizer.param_groups[0]["lr"] = 0.01 * (1 - (step - 1) / steps)
        batch = torch.randint(len(sequences), (128,))
        logits = model(sequences[batch])
        loss = F.cross_entropy(logits.reshape(-1, logits.shape[-1]), counts[batch].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if report is not None:
            report(step, loss.item())


def set_weights(model: nn.Module) -> None:
    rows, d = model.embedding.weight.shape
    if d < rows:
        raise ValueError("d_model is less than vocab + 1")
    b = rows - 1
    sharp = 60 * math.sqrt(d)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.embedding.weight.copy_(torch.eye(rows, d))
        model.W_query.weight.copy_(torch.eye(d))
        model.W_key.weight.copy_(sharp * torch.eye(d))
        model.W_key.weight[:b, b] = sharp  # BOS answers to every token
        model.W_value.weight[b, b] = 1
        model.linear1.weight[0, b] = 1
        n = torch.arange(1, model.length + 2).to(model.linear2.weight.dtype)
        model.linear2.weight[:, 0] = -n
        model.linear2.bias.copy_(n.log())
