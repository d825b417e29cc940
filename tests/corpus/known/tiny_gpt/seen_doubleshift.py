# mistake: targets_shifted_twice
# seen: HF issue 47394 and pull 37830: logits and targets are shifted once more, so each position is trained on the token after the next.
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
        for embedding in (self.token_embedding, self.position_embedding):
            nn.init.normal_(embedding.weight, std=0.1)
        self.drop = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(
            TransformerBlock(d_model, num_heads, 4 * d_model, context_length, dropout)
            for _ in range(num_layers)
        )
        self.norm = LayerNorm(d_model)

    def forward(self, tokens: Tensor) -> Tensor:
        n = tokens.size(1)
        if n > self.context_length:
            raise ValueError(f"{n} tokens are more than {self.context_length}")
        x = self.token_embedding(tokens) + self.position_embedding.weight[:n]
        x = self.drop(x)
        for block in self.blocks:
            x = block(x)
        return self.norm(x) @ self.token_embedding.weight.T


def next_token_loss(model: TinyGPT, windows: Tensor) -> Tensor:
    logits = model(windows[:, :-1])
    targets = windows[:, 1:]
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), targets[:, 1:].flatten())


def random_windows(tokens: Tensor, n_windows: int, length: int) -> Tensor:
    if length > len(tokens):
        raise ValueError("text shorter than one window")
    last = len(tokens) - length
    starts = torch.randint(0, last + 1, (n_windows,), device=tokens.device)
    return tokens.unfold(0, length, 1)[starts]


def train_gpt(
    model: TinyGPT,
    tokens: Tensor,
    steps: int,
    batch_size: int = 16,
    learning_rate: float = 3e-3,
    report: Callable[[int, float], None] | None = None,
) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate)
    for step in range(1, steps + 1):
        model.train()
        windows = random_windows(tokens, batch_size, model.context_length + 1)
        loss = next_token_loss(model, windows)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if report is not None:
            report(step, loss.item())
    model.eval()


def _draw(logits: Tensor, temperature: float, top_k: int | None) -> Tensor:
    if temperature == 0:
        return logits.argmax(-1, keepdim=True)
    logits = logits.float()
    k = logits.shape[-1] if top_k is None else min(top_k, logits.shape[-1])
    values, indices = torch.topk(logits, k)
    probabilities = F.softmax((values - values[:, :1]) / temperature, dim=-1)
    choice = torch.multinomial(probabilities, num_samples=1)
    return indices.gather(-1, choice)


def generate(
    model: TinyGPT,
    prompt: Tensor,
    n: int,
    temperature: float = 1.0,
    top_k: int | None = None,
) -> Tensor:
    if temperature < 0 or (top_k is not None and top_k < 1):
        raise ValueError("temperature must not be negative and top_k must be at least 1")
    mode = model.training
    model.eval()
    try:
        with torch.no_grad():
            for _ in range(n):
                context = prompt[:, -model.context_length :]
                token = _draw(model(context)[:, -1, :], temperature, top_k)
                prompt = torch.cat((prompt, token), dim=1)
    finally:
        model.train(mode)
    return prompt
