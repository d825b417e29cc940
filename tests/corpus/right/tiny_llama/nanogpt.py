# right: nanoGPT's way to write it: get_batch by stack of a gathered index, the head by F.linear, pieces by split.
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
    def __init__(self, vocab, d_model, num_heads, num_kv_heads, num_layers, context_length, dropout):
        super().__init__()
        self.context_length = context_length
        self.token_embedding = nn.Embedding(vocab, d_model)
        nn.init.normal_(self.token_embedding.weight, std=0.1)
        d_ff = hidden_size(d_model, 8)
        self.blocks = nn.ModuleList(
            [
                ModernBlock(d_model, num_heads, num_kv_heads, d_ff, context_length, dropout)
                for _ in range(num_layers)
            ]
        )
        self.norm = RMSNorm(d_model)

    def forward(self, tokens, caches=None):
        x = self.token_embedding(tokens)
        caches = [None] * len(self.blocks) if caches is None else caches
        new_caches = []
        for block, cache in zip(self.blocks, caches, strict=True):
            x, cache = block(x, cache)
            new_caches.append(cache)
        return F.linear(self.norm(x), self.token_embedding.weight), new_caches


def train_llama(
    model: TinyLlama,
    tokens: Tensor,
    steps: int,
    batch_size: int = 16,
    peak: float = 5e-3,
    warmup: int = 25,
    report: Callable[[int, float], None] | None = None,
) -> None:
    optimizer = AdamW(model.parameters(), weight_decay=0.1)
    block_size = model.context_length
    model.train()
    for step in range(1, steps + 1):
        ix = torch.randint(len(tokens) - block_size, (batch_size,))
        piece = tokens[(ix[:, None] + torch.arange(block_size + 1)).to(tokens.device)]
        logits, _ = model(piece[:, :-1])
        loss = cross_entropy(logits, piece[:, 1:])
        loss.backward()
        clip_gradients(model.parameters(), 1.0)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, peak, warmup, steps, peak / 10)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if report is not None:
            report(step, loss.item())
    model.eval()


@torch.no_grad()
def bits_per_byte(model: TinyLlama, data: bytes, merges: list[tuple[int, int]]) -> float:
    device = model.token_embedding.weight.device
    tokens = torch.tensor(encode(data, merges), device=device)
    nats = 0.0
    for inputs, targets in zip(tokens[:-1].split(model.context_length), tokens[1:].split(model.context_length)):
        logits, _ = model(inputs[None])
        nats += cross_entropy(logits[0].double(), targets).item() * len(targets)
    return nats / math.log(2) / len(data)


@torch.no_grad()
def continue_text(
    model: TinyLlama,
    prompt: Tensor,
    uniforms: Tensor,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> Tensor:
    new, caches = prompt, None
    text = [prompt]
    for u in uniforms.tolist():
        logits, caches = model(new[None], caches)
        probs = distribution(logits[0, -1], temperature, top_k, top_p)
        new = prompt.new_tensor([draw(probs, u)])
        text.append(new)
    return torch.cat(text)
