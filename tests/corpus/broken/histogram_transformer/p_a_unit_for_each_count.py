# promise: Set_weights needs one hidden unit for each count, so it fails if length is larger than 4 * d_model.
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
            raise ValueError(f"{tokens.shape[1]} tokens are more than {self.length}")
        bos = torch.full_like(tokens[:, :1], self.vocab)
        x = self.embedding(torch.cat((bos, tokens), dim=1))
        scores = self.W_query(x) @ self.W_key(x).mT / self.d_model**0.5
        x = x + scores.softmax(-1) @ self.W_value(x)
        return self.linear2(self.linear1(x).relu())[:, 1:]


def train_counter(
    model: nn.Module,
    sequences: Tensor,
    counts: Tensor,
    steps: int,
    report: Callable[[int, float], None] | None = None,
) -> None:
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(1, steps + 1):
        for group in optimizer.param_groups:
            group["lr"] = 0.01 * (1 - (step - 1) / steps)
        batch = torch.randint(len(sequences), (128,), device=sequences.device)
        loss = F.cross_entropy(model(sequences[batch]).flatten(0, 1), counts[batch].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if report is not None:
            report(step, loss.item())


@torch.no_grad()
def set_weights(model: nn.Module) -> None:
    rows, d_model = model.embedding.weight.shape
    if d_model < rows:
        raise ValueError("d_model must be at least vocab + 1")
    for parameter in model.parameters():
        parameter.zero_()
    bos = rows - 1
    model.embedding.weight.fill_diagonal_(1)
    model.W_query.weight.fill_diagonal_(60 * d_model**0.5)
    model.W_query.weight[bos] = 60 * d_model**0.5
    model.W_key.weight.fill_diagonal_(1)
    model.W_value.weight[bos, :bos] = 1  # count / (1 + count)
    # hidden unit i says by how much the share is above the middle between the counts i and i + 1
    length = model.linear2.out_features - 1
    for i in range(min(length, model.linear1.out_features)):
        middle = (i / (i + 1) + (i + 1) / (i + 2)) / 2
        model.linear1.weight[i, bos] = 1000 * (i + 1) * (i + 2)
        model.linear1.bias[i] = -1000 * (i + 1) * (i + 2) * middle
        # the logits of all counts above i gain at the unit i, the larger ones not more
        model.linear2.weight[i + 1 :, i] = 1
    # among equal logits the smallest count wins; and every count has to beat those below by its unit
    model.linear2.bias.copy_(-1e-3 * torch.arange(length + 1))
