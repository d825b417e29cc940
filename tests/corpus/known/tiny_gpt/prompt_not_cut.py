# mistake: context_not_cropped
# generate gives the whole text so far to the model, which fails as soon as it is longer than context_length
import torch
from layer_norm import LayerNorm
from torch import Tensor, nn
from torch.nn import functional as F
from transformer_block import TransformerBlock


class TinyGPT(nn.Module):
    def __init__(self, vocab, d_model, num_heads, num_layers, context_length, dropout):
        super().__init__()
        self.context_length = context_length
        self.token_embedding = nn.Embedding(vocab, d_model)
        self.position_embedding = nn.Embedding(context_length, d_model)
        self.dropout = nn.Dropout(dropout)
        args = (d_model, num_heads, 4 * d_model, context_length, dropout)
        self.blocks = nn.ModuleList([TransformerBlock(*args) for _ in range(num_layers)])
        self.norm = LayerNorm(d_model)
        with torch.no_grad():
            self.token_embedding.weight.normal_(0, 0.1)
            self.position_embedding.weight.normal_(0, 0.1)

    def forward(self, tokens: Tensor) -> Tensor:
        n = tokens.size(1)
        if n > self.context_length:
            raise ValueError(f"at most {self.context_length} tokens, got {n}")
        x = self.token_embedding(tokens) + self.position_embedding(torch.arange(n, device=tokens.device))
        x = self.dropout(x)
        for b in self.blocks:
            x = b(x)
        x = self.norm(x)
        return x @ self.token_embedding.weight.mT


def next_token_loss(model, windows: Tensor) -> Tensor:
    return F.cross_entropy(model(windows[:, :-1]).transpose(1, 2), windows[:, 1:])


def random_windows(tokens: Tensor, n_windows: int, length: int) -> Tensor:
    if length > len(tokens):
        raise ValueError(f"{len(tokens)} tokens for a window of {length}")
    i = torch.randint(0, len(tokens) - length + 1, (n_windows, 1), device=tokens.device)
    return tokens[i + torch.arange(length, device=tokens.device)[None]]


def train_gpt(model, tokens, steps, batch_size=16, learning_rate=3e-3, report=None):
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate)
    for step in range(steps):
        loss = next_token_loss(model, random_windows(tokens, batch_size, model.context_length + 1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if report is not None:
            report(step + 1, loss.item())
    model.eval()


@torch.inference_mode()
def _next(model, text, temperature, top_k):
    logits = model(text)[:, -1]
    if temperature == 0:
        return logits.argmax(dim=-1, keepdim=True)
    if top_k is not None:
        values, places = logits.topk(min(top_k, logits.shape[-1]), dim=-1)
        drawn = torch.multinomial(torch.softmax(values / temperature, -1), 1)
        return places.gather(-1, drawn)
    return torch.multinomial(torch.softmax(logits / temperature, -1), 1)


def generate(model, prompt: Tensor, n: int, temperature: float = 1.0, top_k: int | None = None) -> Tensor:
    if temperature < 0:
        raise ValueError("negative temperature")
    if top_k is not None and top_k < 1:
        raise ValueError("top_k must be positive")
    was = model.training
    model.eval()
    for _ in range(n):
        prompt = torch.cat([prompt, _next(model, prompt, temperature, top_k)], dim=1)
    model.train(was)
    return prompt
