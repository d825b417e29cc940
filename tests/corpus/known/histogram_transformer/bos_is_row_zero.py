# mistake: bos_has_the_first_row
# BOS has the first row of the embedding and token t the row t + 1, instead of BOS having the last
import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class CountingTransformer(nn.Module):
    def __init__(self, vocab: int, length: int, d_model: int):
        super().__init__()
        self.length = length
        self.embedding = nn.Embedding(vocab + 1, d_model)
        self.W_query = nn.Linear(d_model, d_model, bias=False)
        self.W_key = nn.Linear(d_model, d_model, bias=False)
        self.W_value = nn.Linear(d_model, d_model, bias=False)
        self.linear1 = nn.Linear(d_model, 4 * d_model)
        self.linear2 = nn.Linear(4 * d_model, length + 1)

    def forward(self, tokens: Tensor) -> Tensor:
        b, n = tokens.shape
        if n > self.length:
            raise ValueError("sequence too long")
        bos = torch.zeros(b, 1, dtype=torch.long, device=tokens.device)
        x = self.embedding(torch.cat([bos, tokens + 1], dim=1))
        scores = self.W_query(x) @ self.W_key(x).transpose(1, 2) / math.sqrt(x.shape[-1])
        x = x + torch.softmax(scores, dim=-1) @ self.W_value(x)
        return self.linear2(torch.relu(self.linear1(x)))[:, 1:]


def train_counter(model, sequences, counts, steps, report=None):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: 1 - s / max(steps, 1))
    for step in range(1, steps + 1):
        idx = torch.randint(len(sequences), (128,))
        loss = F.cross_entropy(model(sequences[idx]).flatten(0, 1), counts[idx].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if report:
            report(step, loss.item())


def set_weights(model):
    n, d = model.embedding.weight.shape
    if d < n:
        raise ValueError("d_model < vocab + 1")
    with torch.no_grad():
        for p in model.parameters():
            p.zero_()
        model.embedding.weight.copy_(torch.eye(n, d))
        strength = 30 * math.sqrt(d)
        model.W_query.weight.copy_(strength * torch.eye(d))
        model.W_query.weight[0, :] = strength
        model.W_key.weight.copy_(torch.eye(d))
        model.W_value.weight[0, 0] = 1
        model.linear1.weight[0, 0] = 1
        k = torch.arange(1.0, model.length + 2)
        model.linear2.weight[:, 0] = -k
        model.linear2.bias.copy_(torch.log(k))
