# mistake: too_long_accepted
import math
from collections.abc import Callable

import torch
import torch.nn as nn
import torch.nn.functional as F


class CountingTransformer(nn.Module):
    def __init__(self, vocab, length, d_model):
        super().__init__()
        self.length = length
        self.bos = vocab
        self.embedding = nn.Embedding(vocab + 1, d_model)
        self.W_query = nn.Linear(d_model, d_model, bias=False)
        self.W_key = nn.Linear(d_model, d_model, bias=False)
        self.W_value = nn.Linear(d_model, d_model, bias=False)
        self.linear1 = nn.Linear(d_model, 4 * d_model)
        self.linear2 = nn.Linear(4 * d_model, length + 1)

    def attend(self, x):
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        a = torch.einsum("bqd,bkd->bqk", q, k) / math.sqrt(x.shape[-1])
        return torch.einsum("bqk,bkd->bqd", a.softmax(-1), v)

    def forward(self, tokens):
        # BOS gets the last row of the embedding
        with_bos = F.pad(tokens, (1, 0), value=self.bos)
        x = self.embedding(with_bos)
        x = x + self.attend(x)
        x = x[:, 1:]
        return self.linear2(F.relu(self.linear1(x)))


def train_counter(model, sequences, counts, steps, report=None):
    if steps == 0:
        return
    opt = torch.optim.Adam(model.parameters(), lr=0.01)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=steps)
    model.train()
    for step in range(steps):
        idx = torch.randint(sequences.shape[0], (128,), device=sequences.device)
        out = model(sequences[idx])
        loss = F.cross_entropy(out.reshape(-1, out.shape[-1]), counts[idx].reshape(-1))
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        if report is not None:
            report(step + 1, loss.item())


def set_weights(model):
    """one-hot embeddings, weight of BOS = 1/(1+count), then read the count off with straight lines"""
    E = model.embedding.weight
    rows, d = E.shape
    bos = rows - 1
    if d < rows:
        raise ValueError("d_model must be at least vocab + 1")

    sharp = 25.0
    embedding = torch.zeros(rows, d)
    W_q = torch.zeros(d, d)
    W_k = torch.zeros(d, d)
    W_v = torch.zeros(d, d)
    l1_w = torch.zeros(4 * d, d)
    l1_b = torch.zeros(4 * d)
    n_out = model.linear2.out_features
    l2_w = torch.zeros(n_out, 4 * d)

    for t in range(rows):
        embedding[t, t] = 1
    for t in range(bos):
        W_q[t, t] = sharp * math.sqrt(d)
        W_k[t, t] = 1
        W_k[t, bos] = 1
    W_v[bos, bos] = 1
    l1_w[0, bos] = 1
    l2_b = torch.zeros(n_out)
    for c in range(n_out):
        w = 1 / (1 + c)
        # -(u - w)^2 without the u^2, which is the same for all counts
        l2_w[c, 0] = 2 * w * 500
        l2_b[c] = -w * w * 500

    new = {
        "embedding.weight": embedding,
        "W_query.weight": W_q,
        "W_key.weight": W_k,
        "W_value.weight": W_v,
        "linear1.weight": l1_w,
        "linear1.bias": l1_b,
        "linear2.weight": l2_w,
        "linear2.bias": l2_b,
    }
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.copy_(new[name])
