# mistake: rank_as_token
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
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(
            [TransformerBlock(d_model, num_heads, 4 * d_model, context_length, dropout)
             for _ in range(num_layers)]
        )
        self.norm = LayerNorm(d_model)

    def forward(self, tokens: Tensor) -> Tensor:
        batch, n_tokens = tokens.shape
        if n_tokens > self.context_length:
            raise ValueError("too many tokens")
        where = torch.arange(n_tokens, device=tokens.device)
        x = self.dropout(self.token_embedding(tokens) + self.position_embedding(where))
        for block in self.blocks:
            x = block(x)
        return self.norm(x) @ self.token_embedding.weight.T


def next_token_loss(model: TinyGPT, windows: Tensor) -> Tensor:
    logits = model(windows[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten())


def random_windows(tokens: Tensor, n_windows: int, length: int) -> Tensor:
    if len(tokens) < length:
        raise ValueError("text too short")
    starts = torch.randint(0, len(tokens) - length + 1, (n_windows,))
    return tokens.unfold(0, length, 1)[starts.to(tokens.device)]


def train_gpt(model: TinyGPT, tokens: Tensor, steps: int, batch_size: int = 16,
              learning_rate: float = 3e-3,
              report: Callable[[int, float], None] | None = None) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate)
    model.train()
    for step in range(1, steps + 1):
        windows = random_windows(tokens, batch_size, model.context_length + 1)
        loss = next_token_loss(model, windows)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if report is not None:
            report(step, loss.item())
    model.eval()


def pick(logits: Tensor, temperature: float, top_k: int | None) -> Tensor:
    if temperature == 0:
        return logits.argmax(dim=-1, keepdim=True)
    if top_k is not None and top_k < logits.shape[-1]:
        best, _ = logits.topk(top_k, dim=-1)
        last = best[:, -1:]
        n_best = int((logits >= last).sum(-1).max())
        best, _ = logits.topk(n_best, dim=-1)
        logits = best.masked_fill(best < last, -torch.inf)
    return torch.multinomial(F.softmax(logits / temperature, dim=-1), 1)


@torch.no_grad()
def generate(model: TinyGPT, prompt: Tensor, n: int, temperature: float = 1.0,
             top_k: int | None = None) -> Tensor:
    if temperature < 0 or (top_k is not None and top_k < 1):
        raise ValueError("bad temperature or top_k")
    mode = model.training
    model.eval()
    for _ in range(n):
        logits = model(prompt[:, -model.context_length:])[:, -1].float()
        prompt = torch.cat([prompt, pick(logits, temperature, top_k)], dim=1)
    model.train(mode)
    return prompt

