"""A tiny GPT in few lines."""

import torch
import torch.nn.functional as F
from torch import nn

from layer_norm import LayerNorm
from transformer_block import TransformerBlock


class TinyGPT(nn.Module):
    def __init__(self, vocab, d_model, num_heads, num_layers, context_length, dropout):
        super().__init__()
        self.context_length, self.p = context_length, dropout
        self.token_embedding = nn.Embedding(
            vocab, d_model, _weight=torch.randn(vocab, d_model) / 10
        )
        self.position_embedding = nn.Embedding(
            context_length, d_model, _weight=torch.randn(context_length, d_model) / 10
        )
        sizes = d_model, num_heads, 4 * d_model, context_length, dropout
        self.blocks = nn.Sequential(*(TransformerBlock(*sizes) for _ in range(num_layers)))
        self.norm = LayerNorm(d_model)

    def forward(self, tokens):
        assert tokens.shape[1] <= self.context_length
        E = self.token_embedding.weight
        x = E[tokens] + self.position_embedding.weight[: tokens.shape[1]]
        return self.norm(self.blocks(F.dropout(x, self.p, self.training))) @ E.mT


def next_token_loss(model, windows):
    log_p = model(windows[:, :-1]).log_softmax(-1)
    return -log_p.gather(2, windows[:, 1:, None]).mean()


def random_windows(tokens, n_windows, length):
    pieces = tokens.unfold(0, length, 1)
    return pieces[torch.randint(len(pieces), (n_windows,))]


def train_gpt(model, tokens, steps, batch_size=16, learning_rate=3e-3, report=None):
    optimizer = torch.optim.AdamW(model.train().parameters(), learning_rate)
    for step in range(steps):
        batch = random_windows(tokens, batch_size, model.context_length + 1)
        (loss := next_token_loss(model, batch)).backward()
        optimizer.step(), optimizer.zero_grad()
        if report:
            report(step + 1, loss.item())
    model.eval()


@torch.inference_mode()
def generate(model, prompt, n, temperature=1.0, top_k=None):
    assert temperature >= 0 and (top_k is None or top_k >= 1)
    mode, text = model.training, prompt
    model.eval()
    for _ in range(n):
        s = model(text[:, -model.context_length :])[:, -1]
        if top_k is not None or temperature == 0:
            k = 1 if temperature == 0 else min(top_k, s.shape[1])
            s = torch.full_like(s, -torch.inf).scatter(1, (top := s.topk(k)).indices, top.values)
        new = (s / (temperature or 1)).softmax(1).multinomial(1)
        text = torch.cat([text, new], 1)
    model.train(mode)
    return text
