# mistake: nothing_cached
"""A tiny Llama with a helper for each thing that it does."""

import torch
import torch.nn as nn
import torch.nn.functional as F

import byte_pair_encoding
import sampling
from adamw import AdamW, clip_gradients, learning_rate
from cross_entropy import cross_entropy
from modern_block import ModernBlock
from rms_norm import RMSNorm
from swiglu import hidden_size


def learned_tokens(data, num_merges):
    merges = byte_pair_encoding.train(data, num_merges)
    return merges, torch.tensor(byte_pair_encoding.encode(data, merges))


class TinyLlama(nn.Module):
    def __init__(
        self, vocab, d_model, num_heads, num_kv_heads, num_layers, context_length, dropout
    ):
        super().__init__()
        self.context_length = context_length
        self.token_embedding = nn.Embedding(vocab, d_model)
        nn.init.normal_(self.token_embedding.weight, mean=0.0, std=0.1)
        self.blocks = nn.ModuleList(
            [
                ModernBlock(
                    d_model=d_model,
                    num_heads=num_heads,
                    num_kv_heads=num_kv_heads,
                    d_ff=hidden_size(d_model, multiple=8),
                    context_length=context_length,
                    dropout=dropout,
                )
                for _ in range(num_layers)
            ]
        )
        self.norm = RMSNorm(d_model)

    def head(self, x):
        return F.linear(self.norm(x), self.token_embedding.weight)

    def forward(self, tokens, caches=None):
        if caches is None:
            caches = [None for _ in self.blocks]
        caches = list(caches)
        h = self.token_embedding(tokens)
        for layer in range(len(self.blocks)):
            h, caches[layer] = self.blocks[layer](h, caches[layer])
        return self.head(h), caches


def draw_batch(tokens, batch_size, length):
    starts = torch.randint(0, tokens.numel() - length + 1, (batch_size,))
    return tokens.unfold(0, length, 1)[starts]


def set_rate(optimizer, rate):
    for group in optimizer.param_groups:
        group["lr"] = rate


def train_llama(model, tokens, steps, batch_size=16, peak=5e-3, warmup=25, report=None):
    optimizer = AdamW(model.parameters(), weight_decay=0.1)
    model.train()
    for i in range(steps):
        set_rate(optimizer, learning_rate(i + 1, peak, warmup, steps, peak / 10))
        batch = draw_batch(tokens, batch_size, model.context_length + 1)
        logits, _ = model(batch[:, :-1])
        loss = cross_entropy(logits, batch[:, 1:])
        for p in model.parameters():
            p.grad = None
        loss.backward()
        clip_gradients(list(model.parameters()), 1.0)
        optimizer.step()
        if report is not None:
            report(i + 1, loss.item())
    model.eval()


def bits_per_byte(model, data, merges):
    tokens = torch.tensor(byte_pair_encoding.encode(data, merges))
    bits = []
    with torch.no_grad():
        for piece in tokens[:-1].split(model.context_length):
            targets = tokens[1 + sum(map(len, bits)) :][: len(piece)]
            logits, _ = model(piece.unsqueeze(0))
            chosen = torch.log2(torch.softmax(logits[0].double(), -1))[range(len(piece)), targets]
            bits.append(-chosen)
    return torch.cat(bits).sum().item() / len(data)


def next_token(model, logits, u, options):
    weights = sampling.distribution(logits[:, -1].squeeze(0), *options)
    return torch.tensor([[sampling.draw(weights, u)]])


def continue_text(model, prompt, uniforms, temperature=1.0, top_k=None, top_p=None):
    with torch.no_grad():
        pieces, caches = [prompt.unsqueeze(0)], None
        for i in range(len(uniforms)):
            logits, caches = model(torch.cat(pieces, dim=1))
            u = uniforms[i].item()
            pieces.append(next_token(model, logits, u, (temperature, top_k, top_p)))
    return torch.cat(pieces, dim=1).squeeze(0)
