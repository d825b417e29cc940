# style: positions by ones_like(tokens).cumsum, gather, scatter of topk into full_like
import torch
import torch.nn.functional as F
from torch import nn

from layer_norm import LayerNorm
from transformer_block import TransformerBlock


class TinyGPT(nn.Module):
    def __init__(self, vocab, d_model, num_heads, num_layers, context_length, dropout):
        super().__init__()
        self.context_length = context_length
        self.token_embedding = nn.Embedding(vocab, d_model)
        self.position_embedding = nn.Embedding(context_length, d_model)
        nn.init.normal_(self.token_embedding.weight, 0, 0.1)
        nn.init.normal_(self.position_embedding.weight, 0, 0.1)
        self.blocks = nn.ModuleList()
        for _ in range(num_layers):
            self.blocks.append(
                TransformerBlock(d_model, num_heads, 4 * d_model, context_length, dropout))
        self.norm = LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, tokens):
        if tokens.shape[1] > self.context_length:
            raise ValueError("too many tokens")
        positions = torch.ones_like(tokens).cumsum(dim=1) - 1
        x = self.dropout(self.token_embedding(tokens) + self.position_embedding(positions))
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm(x), self.token_embedding.weight)


def next_token_loss(model, windows):
    logits = model(windows[:, :-1])
    target_logits = logits.gather(2, windows[:, 1:].unsqueeze(2)).squeeze(2)
    return (logits.logsumexp(dim=2) - target_logits).mean()


def random_windows(tokens, n_windows, length):
    n_places = tokens.shape[0] - length + 1
    if n_places < 1:
        raise ValueError("no window fits into the text")
    starts = torch.empty(n_windows, 1, dtype=torch.long, device=tokens.device).random_(0, n_places)
    places = starts + torch.ones_like(starts).expand(-1, length).cumsum(1) - 1
    return tokens.expand(n_windows, -1).gather(1, places)


def train_gpt(model, tokens, steps, batch_size=16, learning_rate=3e-3, report=None):
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate)
    model.train()
    for step in range(1, steps + 1):
        windows = random_windows(tokens, batch_size, model.context_length + 1)
        model.zero_grad()
        loss = next_token_loss(model, windows)
        loss.backward()
        optimizer.step()
        if report is not None:
            report(step, loss.tolist())
    model.eval()


def generate(model, prompt, n, temperature=1.0, top_k=None):
    if temperature < 0:
        raise ValueError("temperature must not be negative")
    if top_k is not None and top_k < 1:
        raise ValueError("top_k must be positive")
    training = model.training
    model.eval()
    text = prompt.detach().clone()
    try:
        with torch.no_grad():
            for _ in range(n):
                logits = model(text[:, -model.context_length:])[:, -1].double()
                k = 1 if temperature == 0 else min(top_k or logits.shape[-1], logits.shape[-1])
                best, where = logits.topk(k, dim=-1)
                if temperature == 0:
                    new = logits.argmax(-1, keepdim=True)
                else:
                    left = torch.full_like(logits, -torch.inf).scatter(1, where, best - best[:, :1])
                    new = left.div(temperature).softmax(-1).multinomial(1)
                text = torch.cat((text, new.to(text)), dim=1)
    finally:
        model.train(training)
    return text
