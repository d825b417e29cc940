# mistake: tokens_scaled_up
import math
from collections.abc import Callable

import torch
from layer_norm import LayerNorm
from torch import Tensor, nn
from torch.nn import functional as F
from transformer_block import TransformerBlock


class TinyGPT(nn.Module):
    def __init__(self, vocab, d_model, num_heads, num_layers, context_length, dropout):
        super().__init__()
        self.context_length = context_length
        self.d_model = d_model
        self.token_embedding = nn.Embedding(vocab, d_model)
        self.position_embedding = nn.Embedding(context_length, d_model)
        self.embedding_dropout = nn.Dropout(dropout)
        make = lambda: TransformerBlock(d_model, num_heads, 4 * d_model, context_length, dropout)
        self.blocks = nn.ModuleList(make() for _ in range(num_layers))
        self.norm = LayerNorm(d_model)
        self.reset()

    def reset(self):
        nn.init.normal_(self.token_embedding.weight, 0.0, 0.1)
        nn.init.normal_(self.position_embedding.weight, 0.0, 0.1)

    def embed(self, tokens: Tensor) -> Tensor:
        n = tokens.shape[1]
        if n > self.context_length:
            raise ValueError(f"context is {self.context_length}, not {n}")
        positions = self.position_embedding(torch.arange(n, device=tokens.device))
        return self.token_embedding(tokens) * math.sqrt(self.d_model) + positions

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding_dropout(self.embed(tokens))
        for layer in self.blocks:
            x = layer(x)
        return F.linear(self.norm(x), self.token_embedding.weight)


def next_token_loss(model: TinyGPT, windows: Tensor) -> Tensor:
    inputs, wanted = windows[:, :-1], windows[:, 1:]
    logits = model(inputs)
    return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), wanted.reshape(-1))


def random_windows(tokens: Tensor, n_windows: int, length: int) -> Tensor:
    last = tokens.shape[0] - length
    if last < 0:
        raise ValueError("not a single window")
    begin = torch.randint(low=0, high=last + 1, size=(n_windows, 1))
    index = begin + torch.arange(length)
    return tokens[index.to(tokens.device)]


def train_gpt(model: TinyGPT, tokens: Tensor, steps: int, batch_size: int = 16,
              learning_rate: float = 3e-3,
              report: Callable[[int, float], None] | None = None) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate)
    for i in range(steps):
        model.train()
        optimizer.zero_grad()
        loss = next_token_loss(model, random_windows(tokens, batch_size, model.context_length + 1))
        loss.backward()
        optimizer.step()
        if report is not None:
            report(i + 1, loss.item())
    model.eval()


@torch.no_grad()
def generate(model: TinyGPT, prompt: Tensor, n: int, temperature: float = 1.0,
             top_k: int | None = None) -> Tensor:
    if temperature < 0:
        raise ValueError("temperature")
    if top_k is not None and top_k < 1:
        raise ValueError("top_k")
    training = model.training
    model.eval()
    vocab = model.token_embedding.num_embeddings
    for _ in range(n):
        logits = model(prompt[:, -model.context_length:])[:, -1, :].float()
        if temperature == 0:
            token = torch.argmax(logits, dim=-1, keepdim=True)
        else:
            if top_k is not None and top_k < vocab:
                bound = torch.topk(logits, top_k, dim=-1)[0][:, -1:]
                logits = logits.masked_fill(logits < bound, float("-inf"))
            token = torch.multinomial((logits / temperature).softmax(-1), num_samples=1)
        prompt = torch.cat((prompt, token), dim=1)
    model.train(training)
    return prompt

