# mistake: drops_the_last_token
# BOS is in front, but the logits of the last place are left out, so those of each token are one place late and the first are BOS's
import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class CountingTransformer(nn.Module):
    def __init__(self, vocab: int, length: int, d_model: int):
        super().__init__()
        self.vocab, self.length, self.d_model = vocab, length, d_model
        self.embedding = nn.Embedding(vocab + 1, d_model)
        self.W_query = nn.Linear(d_model, d_model, bias=False)
        self.W_key = nn.Linear(d_model, d_model, bias=False)
        self.W_value = nn.Linear(d_model, d_model, bias=False)
        self.linear1 = nn.Linear(d_model, 4 * d_model)
        self.linear2 = nn.Linear(4 * d_model, length + 1)

    def forward(self, tokens: Tensor) -> Tensor:
        if tokens.shape[1] > self.length:
            raise ValueError(f"more than {self.length} tokens")
        bos = torch.full_like(tokens[:, :1], self.vocab)
        x = self.embedding(torch.cat((bos, tokens), 1))
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        weights = (q @ k.mT / math.sqrt(self.d_model)).softmax(-1)
        x = x + weights @ v
        logits = self.linear2(F.relu(self.linear1(x)))
        return logits[:, :-1]


def train_counter(
    model: nn.Module,
    sequences: Tensor,
    counts: Tensor,
    steps: int,
    report: Callable[[int, float], None] | None = None,
) -> None:
    adam = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(steps):
        adam.param_groups[0]["lr"] = 0.01 * (1 - step / steps)
        pick = torch.randint(sequences.shape[0], (128,), device=sequences.device)
        loss = F.cross_entropy(model(sequences[pick]).mT, counts[pick])
        adam.zero_grad()
        loss.backward()
        adam.step()
        if report is not None:
            report(step + 1, loss.item())


def set_weights(model: nn.Module) -> None:
    v, d = model.vocab, model.d_model
    if d < v + 1:
        raise ValueError("d_model is too small")
    with torch.no_grad():
        for p in model.parameters():
            p.zero_()
        model.embedding.weight[range(v + 1), range(v + 1)] = 1.0
        model.W_query.weight += 50 * math.sqrt(d) * torch.eye(d)
        model.W_query.weight[v, :v] = 50 * math.sqrt(d)
        model.W_key.weight += torch.eye(d)
        model.W_value.weight[v, v] = 1.0
        model.linear1.weight[0, v] = 1.0
        n = torch.arange(model.length + 1) + 1.0
        model.linear2.weight[:, 0] = -n
        model.linear2.bias += n.log()
