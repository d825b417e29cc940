# mistake: frozen
# set_weights turns requires_grad off, so the model cannot be trained afterwards
import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class CountingTransformer(nn.Module):
    def __init__(self, vocab: int, length: int, d_model: int):
        super().__init__()
        self.vocab = vocab
        self.length = length
        self.d_model = d_model
        self.embedding = nn.Embedding(vocab + 1, d_model)
        self.W_query = nn.Linear(d_model, d_model, bias=False)
        self.W_key = nn.Linear(d_model, d_model, bias=False)
        self.W_value = nn.Linear(d_model, d_model, bias=False)
        self.linear1 = nn.Linear(d_model, 4 * d_model)
        self.linear2 = nn.Linear(4 * d_model, length + 1)

    def forward(self, tokens: Tensor) -> Tensor:
        if tokens.shape[1] > self.length:
            raise ValueError("sequence longer than length")
        first = torch.full((tokens.shape[0], 1), self.vocab, device=tokens.device)
        x = self.embedding(torch.cat([first, tokens], 1))
        att = self.W_query(x) @ self.W_key(x).transpose(-1, -2) / self.d_model**0.5
        x = x + att.softmax(-1) @ self.W_value(x)
        x = x[:, 1:]
        return self.linear2(F.relu(self.linear1(x)))


def train_counter(model, sequences, counts, steps, report=None):
    opt = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(1, steps + 1):
        opt.param_groups[0]["lr"] = 0.005 * (1 + math.cos(math.pi * step / steps))
        idx = torch.randint(len(sequences), (128,))
        loss = F.cross_entropy(model(sequences[idx]).movedim(-1, 1), counts[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if report is not None:
            report(step, loss.item())


def set_weights(model):
    v, d, c = model.vocab, model.d_model, 45 * math.sqrt(model.d_model)
    if d < v + 1:
        raise ValueError("d_model must be larger than vocab")
    for p in model.parameters():
        p.requires_grad_(False)
        p.zero_()
    eye = torch.eye(d)
    model.embedding.weight.copy_(eye[: v + 1])
    model.W_key.weight.copy_(eye)
    q = c * eye
    q[v, :v] = c
    model.W_query.weight.copy_(q)
    model.W_value.weight[v, v] = 1
    model.linear1.weight[0, v] = 1
    k = torch.arange(model.length + 1) + 1.0
    model.linear2.weight[:, 0] = -k
    model.linear2.bias.copy_(k.log())
