# mistake: not in the catalogue: The tokens of each sequence are sorted first because a count depends on no order, and the logits are never brought back to the old order.
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class CountingTransformer(nn.Module):
    """One block of one head that says how often each token occurs in its sequence."""

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
        """Return the logits of each count, for each token."""
        batch, n_tokens = tokens.shape
        if n_tokens > self.length:
            raise ValueError(f"{n_tokens} tokens are more than {self.length}")
        # a count depends on no order, so equal tokens may stand together
        tokens, _ = tokens.sort(dim=1)
        bos = torch.full((batch, 1), self.vocab, dtype=tokens.dtype, device=tokens.device)
        x = self.embedding(torch.cat([bos, tokens], dim=1))
        scores = self.W_query(x) @ self.W_key(x).transpose(1, 2) / self.d_model**0.5
        weights = torch.softmax(scores, dim=-1)
        x = x + weights @ self.W_value(x)
        logits = self.linear2(torch.relu(self.linear1(x)))
        return logits[:, 1:]


def train_counter(
    model: nn.Module,
    sequences: Tensor,
    counts: Tensor,
    steps: int,
    report: Callable[[int, float], None] | None = None,
) -> None:
    """Train the model to give `counts` for `sequences`, with `steps` updates of its parameters."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(1, steps + 1):
        for group in optimizer.param_groups:
            group["lr"] = 0.01 * (1 - (step - 1) / steps)
        chosen = torch.randint(0, len(sequences), (128,), device=sequences.device)
        logits = model(sequences[chosen])
        loss = F.cross_entropy(logits.flatten(0, 1), counts[chosen].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if report is not None:
            report(step, loss.item())


@torch.no_grad()
def set_weights(model: nn.Module) -> None:
    """Set the parameters of a CountingTransformer, without training, so that it counts exactly."""
    n_symbols, d_model = model.embedding.weight.shape
    vocab = n_symbols - 1
    if d_model < n_symbols:
        raise ValueError(f"d_model = {d_model} is less than {n_symbols}")
    for parameter in model.parameters():
        parameter.zero_()

    # every symbol is a unit vector
    model.embedding.weight[:, :n_symbols] = torch.eye(n_symbols)
    # a token looks for itself, and the key of BOS says yes to everybody
    model.W_query.weight[:vocab, :vocab] = 30 * d_model**0.5 * torch.eye(vocab)
    model.W_key.weight[:vocab, :vocab] = torch.eye(vocab)
    model.W_key.weight[:vocab, vocab] = 1.0
    # the value of BOS is 1, all others are 0: the sum is 1 / (1 + count)
    model.W_value.weight[vocab, vocab] = 1.0
    model.linear1.weight[0, vocab] = 1.0
    # the tangents of u^2 at u_k = 1 / (1 + k): the k-th one is the largest near u_k
    n_counts = model.linear2.weight.shape[0]
    u = 1 / (1 + torch.arange(n_counts, dtype=torch.float64))
    model.linear2.weight[:, 0] = (1000 * 2 * u).to(model.linear2.weight.dtype)
    model.linear2.bias.copy_(-1000 * u**2)
