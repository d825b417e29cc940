"""Reference solution: a small Llama, its training, its bits per byte, and what it writes."""

import math
from collections.abc import Callable

import torch
from adamw import AdamW, clip_gradients, learning_rate
from byte_pair_encoding import encode, train
from cross_entropy import cross_entropy
from modern_block import ModernBlock
from rms_norm import RMSNorm
from sampling import distribution, draw
from swiglu import hidden_size
from torch import Tensor, nn
from torch.nn import functional as F


def learned_tokens(data: bytes, num_merges: int) -> tuple[list[tuple[int, int]], Tensor]:
    """Return the merges that are learned from data, and its tokens, (n_tokens,)."""
    merges = train(data, num_merges)
    return merges, torch.tensor(encode(data, merges))


class TinyLlama(nn.Module):
    """Token embedding, modern blocks, a norm, and the token embedding again as the head."""

    def __init__(
        self,
        vocab: int,
        d_model: int,
        num_heads: int,
        num_kv_heads: int,
        num_layers: int,
        context_length: int,
        dropout: float,
    ) -> None:
        super().__init__()
        self.context_length = context_length
        # --- solution
        self.token_embedding = nn.Embedding(vocab, d_model)
        # As large as torch makes it, the head would start with logits in the tens.
        nn.init.normal_(self.token_embedding.weight, std=0.1)
        sizes = (d_model, num_heads, num_kv_heads, hidden_size(d_model, 8))
        self.blocks = nn.ModuleList(
            ModernBlock(*sizes, context_length, dropout) for _ in range(num_layers)
        )
        self.norm = RMSNorm(d_model)
        # --- end

    def forward(
        self, tokens: Tensor, caches: list[tuple[Tensor, Tensor]] | None = None
    ) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
        """Map the next tokens (batch, n_tokens) to logits (batch, n_tokens, vocab) and caches.

        Raises ValueError for more tokens than context_length, those in the caches included.
        """
        # --- solution
        x = self.token_embedding(tokens)  # (batch, n_tokens, d_model)
        before = caches or [None] * len(self.blocks)
        after = []
        for block, cache in zip(self.blocks, before):
            x, kept = block(x, cache)  # (batch, n_tokens, d_model)
            after.append(kept)
        normed = self.norm(x)  # (batch, n_tokens, d_model)
        logits = normed @ self.token_embedding.weight.T  # (batch, n_tokens, vocab)
        return logits, after
        # --- end


def train_llama(
    model: TinyLlama,
    tokens: Tensor,
    steps: int,
    batch_size: int = 16,
    peak: float = 5e-3,
    warmup: int = 25,
    report: Callable[[int, float], None] | None = None,
) -> None:
    """Train the model on a text tokens (n_text,), and leave it in evaluation mode.

    report, if given, is called with the number of each step, from 1 on, and its loss.
    """
    # --- solution
    optimizer = AdamW(model.parameters(), weight_decay=0.1)
    length = model.context_length + 1  # the last token of a window is only a target
    model.train()
    for step in range(1, steps + 1):
        starts = torch.randint(len(tokens) - length + 1, (batch_size, 1))  # (batch_size, 1)
        windows = tokens[starts + torch.arange(length)]  # (batch_size, length)
        logits, _ = model(windows[:, :-1])  # (batch_size, length - 1, vocab)
        loss = cross_entropy(logits, windows[:, 1:])  # ()
        optimizer.zero_grad()
        loss.backward()
        clip_gradients(model.parameters(), 1.0)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, peak, warmup, steps, peak / 10)
        optimizer.step()
        if report is not None:
            report(step, loss.item())
    model.eval()
    # --- end


def bits_per_byte(model: TinyLlama, data: bytes, merges: list[tuple[int, int]]) -> float:
    """Return how many bits a byte of data takes, if each token costs -log2 of its probability.

    data has two tokens or more. The model reads context_length tokens at a time.
    """
    # --- solution
    tokens = torch.tensor(encode(data, merges))  # (n_tokens,)
    length = model.context_length
    missing = -(len(tokens) - 1) % length  # of the last piece; what stands there does not count
    inputs = F.pad(tokens[:-1], (0, missing)).view(-1, length)  # (n_pieces, length)
    targets = F.pad(tokens[1:], (0, missing), value=-100).view(-1, length)  # (n_pieces, length)
    with torch.no_grad():
        logits, _ = model(inputs)  # (n_pieces, length, vocab)
        nats = cross_entropy(logits, targets).item() * (len(tokens) - 1)
    return nats / math.log(2) / len(data)
    # --- end


def continue_text(
    model: TinyLlama,
    prompt: Tensor,
    uniforms: Tensor,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> Tensor:
    """Continue prompt (n_prompt,) by a token for each of uniforms (n,), to (n_prompt + n,)."""
    # --- solution
    text, new, caches = prompt, prompt, None
    with torch.no_grad():
        for u in uniforms.tolist():
            logits, caches = model(new.unsqueeze(0), caches)  # (1, n_new, vocab)
            weights = distribution(logits[0, -1], temperature, top_k, top_p)  # (vocab,)
            new = torch.tensor([draw(weights, u)])  # (1,)
            text = torch.cat([text, new])  # (n_prompt + more,)
    return text  # (n_prompt + n,)
    # --- end
