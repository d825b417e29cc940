# mistake: set_weights uses a fixed strength of the scores without regard to the division by sqrt(d_model), so in a wide model (300) the other tokens get weight, too, and the counts are wrong
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
        if tokens.size(-1) > self.length:
            raise ValueError("n_tokens > length")
        bos = tokens.new_full((tokens.size(0), 1), self.embedding.num_embeddings - 1)
        x = self.embedding(torch.hstack([bos, tokens]))
        scale = 1.0 / math.sqrt(self.embedding.embedding_dim)
        a = torch.softmax(scale * self.W_query(x) @ self.W_key(x).mT, dim=-1)
        x = x + a @ self.W_value(x)
        return self.linear2(F.relu(self.linear1(x[:, 1:])))


def train_counter(model, sequences, counts, steps, report=None):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(1, steps + 1):
        for g in optimizer.param_groups:
            g["lr"] = 0.01 * (steps - step + 1) / steps
        i = torch.randint(0, len(sequences), (128,))
        optimizer.zero_grad()
        loss = F.cross_entropy(model(sequences[i]).permute(0, 2, 1), counts[i])
        loss.backward()
        optimizer.step()
        if report is not None:
            report(step, loss.item())


@torch.no_grad()
def set_weights(model):
    n_emb, d_model = model.embedding.weight.shape
    vocab = n_emb - 1
    if d_model < n_emb:
        raise ValueError("need d_model >= vocab + 1")
    for p in model.parameters():
        nn.init.zeros_(p)
    nn.init.eye_(model.embedding.weight)
    nn.init.eye_(model.W_key.weight)
    # 50 is large enough: exp(-50) is 0
    model.W_query.weight.fill_diagonal_(50.0)
    model.W_query.weight[vocab, :vocab] = 50.0
    model.W_value.weight[vocab, vocab] = 1.0
    model.linear1.weight[0, vocab] = 1.0
    k = torch.arange(1, model.length + 2).float()
    model.linear2.weight[:, 0] = -k
    model.linear2.bias.copy_(k.log())
