# note: the text is a preallocated tensor that is filled, top-k draws inside the top indices, a context manager keeps the mode, windows come from an index table, embeddings reset by a subclass
import contextlib
from collections.abc import Callable

import torch
from layer_norm import LayerNorm
from torch import Tensor, nn
from torch.nn import functional as F
from transformer_block import TransformerBlock


class SmallEmbedding(nn.Embedding):
    def reset_parameters(self) -> None:
        nn.init.normal_(self.weight, mean=0.0, std=0.1)


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
        self.token_embedding = SmallEmbedding(vocab, d_model)
        self.position_embedding = SmallEmbedding(context_length, d_model)
        self.drop = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(
            TransformerBlock(d_model, num_heads, 4 * d_model, context_length, dropout)
            for _ in range(num_layers)
        )
        self.norm = LayerNorm(d_model)

    def forward(self, tokens: Tensor) -> Tensor:
        match tokens.shape:
            case (_, n) if n <= self.context_length:
                places = torch.arange(n, device=tokens.device)
            case _:
                raise ValueError("too many tokens")
        x = self.drop(self.token_embedding(tokens) + self.position_embedding(places))
        for block in self.blocks:
            x = block(x)
        return torch.einsum("bnd,vd->bnv", self.norm(x), self.token_embedding.weight)


def next_token_loss(model: TinyGPT, windows: Tensor) -> Tensor:
    read, follow = windows[:, :-1], windows[:, 1:]
    return F.cross_entropy(model(read).movedim(-1, 1), follow)


def random_windows(tokens: Tensor, n_windows: int, length: int) -> Tensor:
    places = len(tokens) - length + 1
    if places < 1:
        raise ValueError("the text is too short")
    start = torch.randint(0, places, (n_windows, 1), device=tokens.device)
    return tokens.take(start + torch.arange(length, device=tokens.device))


def train_gpt(
    model: TinyGPT,
    tokens: Tensor,
    steps: int,
    batch_size: int = 16,
    learning_rate: float = 3e-3,
    report: Callable[[int, float], None] | None = None,
) -> None:
    optimizer = torch.optim.AdamW(params=list(model.parameters()), lr=learning_rate)
    for number in range(steps):
        model.train()
        windows = random_windows(tokens, batch_size, 1 + model.context_length)
        loss = next_token_loss(model, windows)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if report is not None:
            report(number + 1, float(loss.detach()))
    model.eval()


@contextlib.contextmanager
def evaluating(model: nn.Module):
    modes = {m: m.training for m in model.modules()}
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for m, mode in modes.items():
            m.training = mode


def generate(
    model: TinyGPT,
    prompt: Tensor,
    n: int,
    temperature: float = 1.0,
    top_k: int | None = None,
) -> Tensor:
    if temperature < 0 or (top_k is not None and top_k < 1):
        raise ValueError("temperature must not be negative, and top_k must be at least 1")
    batch, done = prompt.shape
    text = torch.empty(batch, done + n, dtype=prompt.dtype, device=prompt.device)
    text[:, :done] = prompt
    with evaluating(model):
        for end in range(done, done + n):
            logits = model(text[:, max(0, end - model.context_length) : end])[:, -1, :].float()
            k = 1 if temperature == 0 else min(top_k or logits.size(-1), logits.size(-1))
            best, names = torch.topk(logits, k, dim=-1)
            if k == 1:
                text[:, end] = names[:, 0]
                continue
            p = torch.softmax((best - best[:, :1]) / temperature, dim=-1)
            text[:, end] = names.gather(1, torch.multinomial(p, 1))[:, 0]
    return text
