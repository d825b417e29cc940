# mistake: targets_not_shifted
import math

import torch
from adamw import AdamW, clip_gradients, learning_rate
from byte_pair_encoding import encode, train
from cross_entropy import cross_entropy
from modern_block import ModernBlock
from rms_norm import RMSNorm
from sampling import distribution, draw
from swiglu import hidden_size
from torch import nn


def learned_tokens(data, num_merges):
    merges = train(data, num_merges)
    return merges, torch.tensor(encode(data, merges))


class TinyLlama(nn.Module):
    def __init__(
        self, vocab, d_model, num_heads, num_kv_heads, num_layers, context_length, dropout
    ):
        super().__init__()
        self.context_length = context_length
        self.token_embedding = nn.Embedding(vocab, d_model)
        self.token_embedding.weight.data.normal_(0.0, 0.1)
        d_ff = hidden_size(d_model, 8)
        self.blocks = nn.ModuleList()
        for _ in range(num_layers):
            self.blocks.append(
                ModernBlock(d_model, num_heads, num_kv_heads, d_ff, context_length, dropout=dropout)
            )
        self.norm = RMSNorm(d_model)

    def forward(self, tokens, caches=None):
        x = self.token_embedding(tokens)
        new = []
        for i, block in enumerate(self.blocks):
            x, kept = block(x, cache=None if caches is None else caches[i])
            new.append(kept)
        return torch.einsum("btd,vd->btv", self.norm(x), self.token_embedding.weight), new


def train_llama(model, tokens, steps, batch_size=16, peak=5e-3, warmup=25, report=None):
    opt = AdamW(model.parameters(), lr=peak, weight_decay=0.1)
    all_pieces = tokens.unfold(0, model.context_length + 1, 1)
    model.train()
    for step in range(1, steps + 1):
        opt.param_groups[0]["lr"] = learning_rate(step, peak, warmup, steps, floor=peak / 10)
        pieces = all_pieces[torch.randint(len(all_pieces), (batch_size,))]
        opt.zero_grad()
        loss = cross_entropy(model(pieces[:, :-1])[0].flatten(0, 1), pieces[:, :-1].flatten())
        loss.backward()
        clip_gradients(model.parameters(), 1.0)
        opt.step()
        if report:
            report(step, float(loss))
    model.eval()


@torch.no_grad()
def bits_per_byte(model, data, merges):
    tokens = torch.tensor(encode(data, merges))[None]
    total = 0.0
    for start in range(0, tokens.shape[1] - 1, model.context_length):
        piece = tokens[:, start : start + model.context_length + 1]
        log_probs = model(piece[:, :-1])[0].log_softmax(-1)
        total -= log_probs.gather(2, piece[:, 1:, None]).sum().item()
    return total / math.log(2) / len(data)


@torch.inference_mode()
def continue_text(model, prompt, uniforms, temperature=1.0, top_k=None, top_p=None):
    out, caches = prompt.tolist(), None
    unread = list(out)
    for u in uniforms.tolist():
        logits, caches = model(torch.tensor([unread]), caches)
        unread = [draw(distribution(logits[0, -1], temperature, top_k, top_p), u)]
        out += unread
    return torch.tensor(out)
