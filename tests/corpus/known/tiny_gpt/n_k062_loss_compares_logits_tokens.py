# mistake: targets_not_shifted
import contextlib

import torch
import torch.nn as nn
import torch.nn.functional as F
from layer_norm import LayerNorm
from transformer_block import TransformerBlock


@contextlib.contextmanager
def evaluating(model):
    """eval mode without gradients; puts the old mode back, whatever happens"""
    mode = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield model
    finally:
        model.train(mode)


class TinyGPT(nn.Module):
    def __init__(self, vocab, d_model, num_heads, num_layers, context_length, dropout):
        super().__init__()
        self.context_length = context_length
        self.token_embedding = nn.Embedding(vocab, d_model)
        self.position_embedding = nn.Embedding(context_length, d_model)
        for table in (self.token_embedding, self.position_embedding):
            nn.init.normal_(table.weight, mean=0.0, std=0.1)
        self.drop_rate = dropout
        layers = []
        for _ in range(num_layers):
            layers.append(TransformerBlock(d_model, num_heads, 4 * d_model, context_length, dropout))
        self.blocks = nn.ModuleList(layers)
        self.norm = LayerNorm(d_model)

    def embed(self, tokens):
        n = tokens.size(1)
        x = self.token_embedding(tokens) + self.position_embedding.weight[:n]
        return F.dropout(x, self.drop_rate, self.training)

    def forward(self, tokens):
        if tokens.size(1) > self.context_length:
            raise ValueError(f"at most {self.context_length} tokens")
        h = self.embed(tokens)
        for layer in self.blocks:
            h = layer(h)
        # the embedding is the head, too
        return F.linear(self.norm(h), self.token_embedding.weight)


def next_token_loss(model, windows):
    inputs = windows[:, :-1]
    labels = inputs
    logp = F.log_softmax(model(inputs), dim=-1)
    picked = logp.gather(-1, labels.unsqueeze(-1))
    return -picked.mean()


def random_windows(tokens, n_windows, length):
    n_text = tokens.shape[0]
    if n_text < length:
        raise ValueError("text too short")
    # all windows as a view, then some of them
    everything = tokens.unfold(0, length, 1)
    return everything[torch.randint(0, everything.shape[0], (n_windows,), device=tokens.device)]


def train_gpt(model, tokens, steps, batch_size=16, learning_rate=3e-3, report=None):
    opt = torch.optim.AdamW(model.parameters(), lr=learning_rate)
    for i in range(steps):
        model.train()
        batch = random_windows(tokens, batch_size, model.context_length + 1)
        opt.zero_grad()
        loss = next_token_loss(model, batch)
        loss.backward()
        opt.step()
        if report is not None:
            report(i + 1, loss.item())
    model.eval()


def _choose(logits, temperature, top_k):
    """logits (batch, vocab) -> (batch, 1)"""
    if temperature == 0:
        return logits.argmax(-1, keepdim=True)
    logits = logits.float()
    if top_k is not None and top_k < logits.size(-1):
        keep = logits.topk(top_k).indices
        hidden = torch.ones_like(logits, dtype=torch.bool).scatter(1, keep, False)
        logits = logits.masked_fill(hidden, float("-inf"))
    logits = logits - logits.amax(-1, keepdim=True)
    return torch.multinomial((logits / temperature).softmax(-1), num_samples=1)


def generate(model, prompt, n, temperature=1.0, top_k=None):
    if temperature < 0:
        raise ValueError("negative temperature")
    if top_k is not None and top_k < 1:
        raise ValueError("top_k < 1")
    out = prompt.clone()
    with evaluating(model):
        while out.size(1) < prompt.size(1) + n:
            window = out[:, -model.context_length:]
            out = torch.cat((out, _choose(model(window)[:, -1], temperature, top_k)), dim=1)
    return out
