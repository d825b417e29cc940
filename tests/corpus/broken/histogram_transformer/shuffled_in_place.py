# broken: No argument but the parameters of the model is modified: sequences and counts are shuffled in place (together)
import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class CountingTransformer(nn.Module):
    """One block of one head that says how often each token occurs in its sequence."""

    def __init__(self, vocab: int, length: int, d_model: int):
        super().__init__()
        self.vocab, self.length, self.d_model = vocab, length, d_model
        self.embedding = nn.Embedding(vocab + 1, d_model)
        nn.init.normal_(self.embedding.weight, std=0.2)
        self.W_query = nn.Linear(d_model, d_model, bias=False)
        self.W_key = nn.Linear(d_model, d_model, bias=False)
        self.W_value = nn.Linear(d_model, d_model, bias=False)
        self.linear1 = nn.Linear(d_model, 4 * d_model)
        self.linear2 = nn.Linear(4 * d_model, length + 1)

    def _rows(self, tokens: Tensor) -> Tensor:
        """The row of the embedding of BOS and of each token."""
        return F.pad(tokens, (1, 0), value=self.vocab)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the logits of each count, for each token."""
        if tokens.shape[1] > self.length:
            raise ValueError(f"{tokens.shape[1]} tokens are more than {self.length}")
        x = self.embedding(self._rows(tokens))
        scores = self.W_query(x) @ self.W_key(x).mT / math.sqrt(self.d_model)
        x = x + torch.softmax(scores, dim=-1) @ self.W_value(x)
        return self.linear2(self.linear1(x[:, 1:]).relu())


def train_counter(
    model: nn.Module,
    sequences: Tensor,
    counts: Tensor,
    steps: int,
    report: Callable[[int, float], None] | None = None,
) -> None:
    """Train the model to give `counts` for `sequences`, with `steps` updates of its parameters."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    order = torch.randperm(len(sequences), device=sequences.device)
    sequences.copy_(sequences[order])
    counts.copy_(counts[order])
    for step in range(1, steps + 1):
        optimizer.param_groups[0]["lr"] = min(1.0, step / 50) * 0.01 * (steps - step + 1) / steps
        drawn = (torch.arange(128, device=sequences.device) + 128 * step) % len(sequences)
        x, y = sequences[drawn], counts[drawn]
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if report is not None:
            report(step, loss.item())


@torch.no_grad()
def set_weights(model: nn.Module) -> None:
    """Set the parameters of a CountingTransformer, without training, so that it counts exactly."""
    vocab, d_model = model.embedding.weight.shape[0] - 1, model.embedding.weight.shape[1]
    n_counts = model.linear2.weight.shape[0]
    if d_model < vocab + 1:
        raise ValueError(f"d_model = {d_model} is less than vocab + 1 = {vocab + 1}")
    for parameter in model.parameters():
        parameter.zero_()
    bos, first = vocab, 0
    one_hot = torch.eye(vocab + 1, d_model)
    query = torch.eye(d_model)
    query[bos] = 1.0  # every token also asks for BOS
    write = torch.zeros(d_model, d_model)
    write[bos, bos] = 1.0
    share = 1.0 / torch.arange(1, n_counts + 1)  # the weight of BOS for each count
    scale = 1000.0
    model.embedding.weight.copy_(one_hot)
    model.W_query.weight.copy_(40.0 * math.sqrt(d_model) * query)
    model.W_key.weight.copy_(torch.eye(d_model))
    model.W_value.weight.copy_(write)
    model.linear1.weight[first, bos] = 1.0
    model.linear2.weight[:, first] = 2 * scale * share
    model.linear2.bias.copy_(-scale * share.square())
