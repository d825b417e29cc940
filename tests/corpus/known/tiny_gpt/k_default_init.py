# mistake: embeddings_start_large
# the embeddings keep nn.Embedding's own start, a standard deviation of 1 instead of 0.1
from collections.abc import Callable

import torch
from layer_norm import LayerNorm
from torch import Tensor, nn
from torch.nn import functional as F
from transformer_block import TransformerBlock


class TinyGPT(nn.Module):
    """Embeddings, blocks, a norm, and the token embedding as head."""

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
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.ModuleList()
        for _ in range(num_layers):
            self.blocks.append(TransformerBlock(d_model, num_heads, 4 * d_model, context_length, dropout))
        self.norm = LayerNorm(d_model)

    def forward(self, tokens: Tensor) -> Tensor:
        if tokens.shape[1] > self.context_length:
            raise ValueError(f"{tokens.shape[1]} tokens > {self.context_length}")
        positions = self.position_embedding.weight[: tokens.shape[1]]
        x = self.dropout(self.token_embedding(tokens) + positions)
        for block in self.blocks:
            x = block(x)
        return self.norm(x) @ self.token_embedding.weight.T


def next_token_loss(model: TinyGPT, windows: Tensor) -> Tensor:
    inputs, targets = windows[:, :-1], windows[:, 1:]
    logits = model(inputs)
    return F.cross_entropy(logits.reshape(-1, logits.size(-1)), targets.reshape(-1))


def random_windows(tokens: Tensor, n_windows: int, length: int) -> Tensor:
    last = tokens.size(0) - length
    if last < 0:
        raise ValueError("no window fits")
    starts = torch.randint(0, last + 1, (n_windows, 1), device=tokens.device)
    return tokens[starts + torch.arange(length, device=tokens.device)]


def train_gpt(
    model: TinyGPT,
    tokens: Tensor,
    steps: int,
    batch_size: int = 16,
    learning_rate: float = 3e-3,
    report: Callable[[int, float], None] | None = None,
) -> None:
    model.train()
    adamw = torch.optim.AdamW(model.parameters(), lr=learning_rate)
    for step in range(1, steps + 1):
        windows = random_windows(tokens, batch_size, model.context_length + 1)
        loss = next_token_loss(model, windows)
        adamw.zero_grad()
        loss.backward()
        adamw.step()
        if report is not None:
            report(step, loss.item())
    model.eval()


def generate(
    model: TinyGPT, prompt: Tensor, n: int, temperature: float = 1.0, top_k: int | None = None
) -> Tensor:
    if temperature < 0:
        raise ValueError(f"temperature = {temperature}")
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k = {top_k}")
    training = model.training
    model.eval()
    text = prompt.clone()
    with torch.no_grad():
        for _ in range(n):
            last = model(text[:, -model.context_length :])[:, -1, :]
            if temperature == 0:
                token = last.argmax(dim=-1, keepdim=True)
            else:
                if top_k is not None and top_k < last.size(-1):
                    bound = last.topk(top_k, dim=-1).values[:, -1, None]
                    last = torch.where(last < bound, -torch.inf, last)
                token = torch.multinomial(F.softmax(last / temperature, dim=-1), 1)
            text = torch.cat((text, token), dim=1)
    model.train(training)
    return text
