# mistake: other_generator
# random_windows draws with Python's random module, so torch.manual_seed does not make it repeatable
import random

import torch
from layer_norm import LayerNorm
from torch import Tensor, nn
from torch.nn import functional as F
from transformer_block import TransformerBlock


class TinyGPT(nn.Module):
    def __init__(
        self, vocab: int, d_model: int, num_heads: int, num_layers: int, context_length: int, dropout: float
    ) -> None:
        super().__init__()
        self.context_length = context_length
        self.token_embedding = nn.Embedding(vocab, d_model)
        self.position_embedding = nn.Embedding(context_length, d_model)
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(
            TransformerBlock(d_model, num_heads, 4 * d_model, context_length, dropout, True, True)
            for _ in range(num_layers)
        )
        self.norm = LayerNorm(d_model)
        nn.init.normal_(self.token_embedding.weight, std=0.1)
        nn.init.normal_(self.position_embedding.weight, std=0.1)

    def forward(self, tokens: Tensor) -> Tensor:
        n = tokens.shape[-1]
        if n > self.context_length:
            raise ValueError("context_length")
        x = self.dropout(self.token_embedding(tokens) + self.position_embedding.weight[:n])
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm(x), self.token_embedding.weight)


def next_token_loss(model: TinyGPT, windows: Tensor) -> Tensor:
    logits = model(windows[:, :-1])
    return F.cross_entropy(logits.permute(0, 2, 1), windows[:, 1:])


def random_windows(tokens: Tensor, n_windows: int, length: int) -> Tensor:
    n_places = len(tokens) - length + 1
    if n_places < 1:
        raise ValueError("text shorter than a window")
    starts = torch.tensor(random.choices(range(n_places), k=n_windows), device=tokens.device)
    return tokens[starts[:, None] + torch.arange(length, device=tokens.device)]


def train_gpt(model, tokens, steps, batch_size=16, learning_rate=3e-3, report=None):
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate)
    model.train()
    for step in range(1, steps + 1):
        optimizer.zero_grad()
        loss = next_token_loss(model, random_windows(tokens, batch_size, model.context_length + 1))
        loss.backward()
        optimizer.step()
        if report is not None:
            report(step, loss.item())
    model.eval()


def generate(model, prompt, n, temperature=1.0, top_k=None):
    if temperature < 0:
        raise ValueError("temperature")
    if top_k is not None and top_k < 1:
        raise ValueError("top_k")
    state = model.training
    model.eval()
    tokens = prompt
    with torch.no_grad():
        for _ in range(n):
            logits = model(tokens[:, -model.context_length :])[:, -1]
            if temperature == 0:
                best = logits.argmax(-1, keepdim=True)
            else:
                k = logits.size(-1) if top_k is None else min(top_k, logits.size(-1))
                top, index = logits.topk(k)
                best = index.gather(1, (top / temperature).softmax(-1).multinomial(1))
            tokens = torch.cat([tokens, best], 1)
    model.train(state)
    return tokens
