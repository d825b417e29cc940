# promise: The rows of a batch are drawn with one random number, shifted by 1 / batch from row to row, not on their own.
from collections.abc import Callable

import torch
from layer_norm import LayerNorm
from torch import Tensor, nn
from torch.nn import functional as F
from transformer_block import TransformerBlock


class TinyGPT(nn.Module):
    def __init__(
        self,
        vocab: int,
        d_model: int,
        num_heads: int,
        num_layers: int,
        context_length: int,
        dropout: float,
    ) -> None:
        super().__init__()
        self.context_length = context_length
        self.token_embedding = nn.Embedding(vocab, d_model)
        self.position_embedding = nn.Embedding(context_length, d_model)
        nn.init.normal_(self.token_embedding.weight, std=0.1)
        nn.init.normal_(self.position_embedding.weight, std=0.1)
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(
            TransformerBlock(d_model, num_heads, 4 * d_model, context_length, dropout)
            for _ in range(num_layers)
        )
        self.norm = LayerNorm(d_model)

    def forward(self, tokens: Tensor) -> Tensor:
        n = tokens.shape[1]
        if n > self.context_length:
            raise ValueError(f"{n} tokens are more than {self.context_length}")
        x = self.token_embedding(tokens) + self.position_embedding.weight[:n]
        x = self.dropout(x)
        for block in self.blocks:
            x = block(x)
        return self.norm(x) @ self.token_embedding.weight.T


def next_token_loss(model: TinyGPT, windows: Tensor) -> Tensor:
    logits = model(windows[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten())


def random_windows(tokens: Tensor, n_windows: int, length: int) -> Tensor:
    places = len(tokens) - length + 1
    if places < 1:
        raise ValueError("the text is shorter than a window")
    start = torch.randint(places, (n_windows, 1), device=tokens.device)
    return tokens[start + torch.arange(length, device=tokens.device)]


def train_gpt(
    model: TinyGPT,
    tokens: Tensor,
    steps: int,
    batch_size: int = 16,
    learning_rate: float = 3e-3,
    report: Callable[[int, float], None] | None = None,
) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate)
    model.train()
    for step in range(1, steps + 1):
        loss = next_token_loss(model, random_windows(tokens, batch_size, model.context_length + 1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if report is not None:
            report(step, loss.item())
    model.eval()


def _stratified(probabilities: Tensor) -> Tensor:
    """One token for each row; each row by itself follows its probabilities."""
    batch = len(probabilities)
    shift = torch.arange(batch, dtype=torch.float64, device=probabilities.device) / batch
    u = (torch.rand((), dtype=torch.float64, device=probabilities.device) + shift).frac()
    edges = probabilities.double().cumsum(-1)
    edges = edges / edges[:, -1:]
    return torch.searchsorted(edges, u.unsqueeze(-1), right=True).clamp(max=edges.shape[-1] - 1)


@torch.no_grad()
def generate(
    model: TinyGPT,
    prompt: Tensor,
    n: int,
    temperature: float = 1.0,
    top_k: int | None = None,
) -> Tensor:
    if temperature < 0:
        raise ValueError("temperature must not be negative")
    if top_k is not None and top_k < 1:
        raise ValueError("top_k must be at least 1")
    was_training = model.training
    model.eval()
    text = prompt.clone()
    for _ in range(n):
        logits = model(text[:, -model.context_length :])[:, -1].float()
        if temperature == 0:
            token = logits.argmax(-1, keepdim=True)
        else:
            k = logits.shape[-1] if top_k is None else min(top_k, logits.shape[-1])
            best, index = logits.topk(k)
            best = best - best[:, :1]
            choice = _stratified(torch.softmax(best / temperature, -1))
            token = index.gather(1, choice)
        text = torch.cat((text, token), dim=1)
    model.train(was_training)
    return text
