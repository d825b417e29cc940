# mistake: last_place_never_drawn
from collections.abc import Callable

import torch
from layer_norm import LayerNorm
from torch import Tensor, nn
from torch.nn import functional as F
from transformer_block import TransformerBlock


class TinyGPT(nn.Module):
    """Embeddings, Transformer blocks, a norm, and the token embedding again as the head."""

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
        self.blocks = nn.ModuleList(
            TransformerBlock(d_model, num_heads, 4 * d_model, context_length, dropout)
            for _ in range(num_layers)
        )
        self.norm = LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        nn.init.normal_(self.token_embedding.weight, std=0.1)
        nn.init.normal_(self.position_embedding.weight, std=0.1)

    def forward(self, tokens: Tensor) -> Tensor:
        """Map tokens (batch, n_tokens) to logits (batch, n_tokens, vocab)."""
        n_tokens = tokens.shape[1]
        if n_tokens > self.context_length:
            raise ValueError(f"{n_tokens} tokens are more than {self.context_length}")
        places = torch.arange(n_tokens, device=tokens.device)
        x = self.token_embedding(tokens) + self.position_embedding(places)
        x = self.dropout(x)
        for block in self.blocks:
            x = block(x)
        return self.norm(x) @ self.token_embedding.weight.T


def next_token_loss(model: TinyGPT, windows: Tensor) -> Tensor:
    """Return the mean cross-entropy of each token in windows given those before it, ()."""
    logits = model(windows[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten())


def random_windows(tokens: Tensor, n_windows: int, length: int) -> Tensor:
    """Return random pieces of a text tokens (n_text,), as (n_windows, length)."""
    last = len(tokens) - length
    if last < 0:
        raise ValueError("the text is shorter than a window")
    starts = torch.randint(0, max(last, 1), (n_windows, 1), device=tokens.device)
    return tokens[starts + torch.arange(length, device=tokens.device)]


def train_gpt(
    model: TinyGPT,
    tokens: Tensor,
    steps: int,
    batch_size: int = 16,
    learning_rate: float = 3e-3,
    report: Callable[[int, float], None] | None = None,
) -> None:
    """Train the model on a text tokens (n_text,), and leave it in evaluation mode."""
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


@torch.no_grad()
def generate(
    model: TinyGPT,
    prompt: Tensor,
    n: int,
    temperature: float = 1.0,
    top_k: int | None = None,
) -> Tensor:
    """Continue each row of prompt (batch, n_prompt) by n tokens, to (batch, n_prompt + n)."""
    if temperature < 0:
        raise ValueError("the temperature must not be negative")
    if top_k is not None and top_k < 1:
        raise ValueError("top_k must be at least 1")
    was_training = model.training
    model.eval()
    text = prompt
    for _ in range(n):
        logits = model(text[:, -model.context_length :])[:, -1].float()
        if temperature == 0:
            token = logits.argmax(dim=-1, keepdim=True)
        else:
            best = logits.topk(min(top_k or logits.shape[-1], logits.shape[-1]), dim=-1)
            scaled = (best.values - best.values[:, :1]) / temperature
            drawn = torch.multinomial(torch.softmax(scaled, dim=-1), 1)
            token = best.indices.gather(1, drawn)
        text = torch.cat([text, token], dim=1)
    model.train(was_training)
    return text
