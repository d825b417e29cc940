# broken: The random numbers are those of torch's own generator, so torch.manual_seed before a call makes it repeatable: generate draws from a new generator with a seed of its own
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
        nn.init.normal_(self.token_embedding.weight, std=0.1)
        nn.init.normal_(self.position_embedding.weight, std=0.1)
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(
            TransformerBlock(d_model, num_heads, 4 * d_model, context_length, dropout)
            for _ in range(num_layers)
        )
        self.norm = LayerNorm(d_model)

    def forward(self, tokens: Tensor) -> Tensor:
        """Map tokens (batch, n_tokens) to logits (batch, n_tokens, vocab)."""
        n_tokens = tokens.shape[1]
        if n_tokens > self.context_length:
            raise ValueError(f"{n_tokens} tokens are more than {self.context_length}")
        x = self.token_embedding(tokens) + self.position_embedding.weight[:n_tokens]
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
    n_places = len(tokens) - length + 1
    if n_places < 1:
        raise ValueError(f"a text of {len(tokens)} tokens has no window of {length}")
    starts = torch.randint(n_places, (n_windows, 1), device=tokens.device)
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
        raise ValueError(f"the temperature {temperature} is negative")
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k = {top_k} is less than 1")
    was_training = model.training
    model.eval()
    text = prompt
    generator = torch.Generator(device=prompt.device)
    generator.seed()
    for _ in range(n):
        logits = model(text[:, -model.context_length :])[:, -1]
        if temperature == 0:
            token = logits.argmax(dim=-1, keepdim=True)
        else:
            if top_k is not None and top_k < logits.shape[-1]:
                last = logits.topk(top_k, dim=-1).values[:, -1:]
                logits = logits.masked_fill(logits < last, -torch.inf)
            token = torch.multinomial(torch.softmax(logits / temperature, dim=-1), 1, generator=generator)
        text = torch.cat((text, token), dim=1)
    model.train(was_training)
    return text
