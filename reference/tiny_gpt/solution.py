"""Reference solution: a small language model, its training, and what it writes."""

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
        # --- solution
        self.token_embedding = nn.Embedding(vocab, d_model)
        self.position_embedding = nn.Embedding(context_length, d_model)
        # As large as torch makes them, the head would start with logits in the tens.
        nn.init.normal_(self.token_embedding.weight, std=0.1)
        nn.init.normal_(self.position_embedding.weight, std=0.1)
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(
            TransformerBlock(d_model, num_heads, 4 * d_model, context_length, dropout)
            for _ in range(num_layers)
        )
        self.norm = LayerNorm(d_model)
        # --- end

    def forward(self, tokens: Tensor) -> Tensor:
        """Map tokens (batch, n_tokens) to logits (batch, n_tokens, vocab).

        Raises ValueError for more than context_length tokens.
        """
        # --- solution
        n_tokens = tokens.shape[1]
        if n_tokens > self.context_length:
            raise ValueError(f"{n_tokens} tokens exceed the context of {self.context_length}")
        positions = torch.arange(n_tokens, device=tokens.device)  # (n_tokens,)
        embedded = self.token_embedding(tokens) + self.position_embedding(positions)
        x = self.dropout(embedded)  # (batch, n_tokens, d_model)
        for block in self.blocks:
            x = block(x)  # (batch, n_tokens, d_model)
        normed = self.norm(x)  # (batch, n_tokens, d_model)
        return normed @ self.token_embedding.weight.T  # (batch, n_tokens, vocab)
        # --- end


def next_token_loss(model: TinyGPT, windows: Tensor) -> Tensor:
    """Return the mean cross-entropy of each token in windows given those before it, ().

    windows (batch, n_tokens + 1): the model gets all but the last token of each, and has to predict
    all but the first.
    """
    # --- solution
    logits = model(windows[:, :-1])  # (batch, n_tokens, vocab)
    targets = windows[:, 1:]  # (batch, n_tokens)
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())  # ()
    # --- end


def random_windows(tokens: Tensor, n_windows: int, length: int) -> Tensor:
    """Return random pieces of a text tokens (n_text,), as (n_windows, length).

    Raises ValueError if the text is shorter than a window.
    """
    # --- solution
    n_starts = len(tokens) - length + 1
    if n_starts < 1:
        raise ValueError(f"a text of {len(tokens)} tokens has no window of {length}")
    starts = torch.randint(n_starts, (n_windows, 1))  # (n_windows, 1)
    return tokens[starts + torch.arange(length)]  # (n_windows, length)
    # --- end


def train_gpt(
    model: TinyGPT,
    tokens: Tensor,
    steps: int,
    batch_size: int = 16,
    learning_rate: float = 3e-3,
    report: Callable[[int, float], None] | None = None,
) -> None:
    """Train the model on a text tokens (n_text,), and leave it in evaluation mode.

    report, if given, is called with the number of each step, from 1 on, and its loss.
    """
    # --- solution
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate)
    model.train()
    for step in range(1, steps + 1):
        # One token more than the context is long, so that the last position learns as well.
        windows = random_windows(tokens, batch_size, model.context_length + 1)
        loss = next_token_loss(model, windows)  # ()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if report is not None:
            report(step, loss.item())
    model.eval()
    # --- end


def generate(
    model: TinyGPT,
    prompt: Tensor,
    n: int,
    temperature: float = 1.0,
    top_k: int | None = None,
) -> Tensor:
    """Continue each row of prompt (batch, n_prompt) by n tokens, to (batch, n_prompt + n).

    Temperature 0 takes the most likely token. With top_k, only the top_k most likely tokens can be
    drawn. Raises ValueError for a negative temperature, or a top_k below 1.
    """
    # --- solution
    if temperature < 0:
        raise ValueError(f"the temperature must not be negative, and is {temperature}")
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k must be at least 1, and is {top_k}")
    was_training = model.training
    model.eval()
    tokens = prompt  # (batch, n_prompt)
    with torch.no_grad():
        for _ in range(n):
            logits = model(tokens[:, -model.context_length :])[:, -1]  # (batch, vocab)
            if temperature == 0:
                new = logits.argmax(dim=-1, keepdim=True)  # (batch, 1)
            else:
                if top_k is not None:
                    kept = logits.topk(min(top_k, logits.shape[-1])).values  # (batch, top_k)
                    logits = logits.masked_fill(logits < kept[:, -1:], -torch.inf)  # (batch, vocab)
                weights = torch.softmax(logits / temperature, dim=-1)  # (batch, vocab)
                new = torch.multinomial(weights, 1)  # (batch, 1)
            tokens = torch.cat([tokens, new], dim=1)  # (batch, n_prompt + more)
    model.train(was_training)
    return tokens  # (batch, n_prompt + n)
    # --- end
