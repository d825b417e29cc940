# right: with top_k exactly k tokens can be drawn
from collections.abc import Callable

import torch
from layer_norm import LayerNorm
from torch import Tensor, nn
from torch.nn import functional as F
from transformer_block import TransformerBlock


class TinyGPT(nn.Module):
    def __init__(self, vocab, d_model, num_heads, num_layers, context_length, dropout):
        super().__init__()
        self.context_length = context_length
        self.token_embedding = nn.Embedding(vocab, d_model)
        self.position_embedding = nn.Embedding(context_length, d_model)
        nn.init.normal_(self.token_embedding.weight, std=0.1)
        nn.init.normal_(self.position_embedding.weight, std=0.1)
        self.drop = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(
            TransformerBlock(d_model, num_heads, 4 * d_model, context_length, dropout)
            for _ in range(num_layers)
        )
        self.norm = LayerNorm(d_model)

    def forward(self, tokens: Tensor) -> Tensor:
        if tokens.shape[1] > self.context_length:
            raise ValueError("more tokens than context_length")
        x = self.token_embedding(tokens) + self.position_embedding.weight[: tokens.shape[1]]
        x = self.drop(x)
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm(x), self.token_embedding.weight)


def next_token_loss(model: TinyGPT, windows: Tensor) -> Tensor:
    return F.cross_entropy(model(windows[:, :-1]).flatten(0, 1), windows[:, 1:].flatten())


def random_windows(tokens: Tensor, n_windows: int, length: int) -> Tensor:
    spare = len(tokens) - length
    if spare < 0:
        raise ValueError("text shorter than a window")
    start = torch.randint(spare + 1, (n_windows, 1), device=tokens.device)
    return tokens[start + torch.arange(length, device=tokens.device)]


def train_gpt(model: TinyGPT, tokens: Tensor, steps: int, batch_size: int = 16,
              learning_rate: float = 3e-3,
              report: Callable[[int, float], None] | None = None) -> None:
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


@torch.no_grad()
def generate(model: TinyGPT, prompt: Tensor, n: int, temperature: float = 1.0,
             top_k: int | None = None) -> Tensor:
    if temperature < 0:
        raise ValueError("temperature < 0")
    if top_k is not None and top_k < 1:
        raise ValueError("top_k < 1")
    mode = model.training
    model.eval()
    text = prompt
    for _ in range(n):
        logits = model(text[:, -model.context_length :])[:, -1].float()
        if temperature == 0:
            token = logits.argmax(-1, keepdim=True)
        else:
            k = logits.shape[-1] if top_k is None else min(top_k, logits.shape[-1])
            best, candidates = logits.topk(k, dim=-1)
            drawn = torch.multinomial(F.softmax(best / temperature, dim=-1), 1)
            token = candidates.gather(-1, drawn)
        text = torch.cat([text, token], dim=1)
    model.train(mode)
    return text

