# mistake: windows_side_by_side
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

        def table(rows):
            embedding = nn.Embedding(rows, d_model)
            nn.init.normal_(embedding.weight, std=0.1)
            return embedding

        self.token_embedding = table(vocab)
        self.position_embedding = table(context_length)
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(
            [TransformerBlock(d_model, num_heads, 4 * d_model, context_length, dropout)
             for _ in range(num_layers)])
        self.norm = LayerNorm(d_model)

    def forward(self, tokens: Tensor) -> Tensor:
        length = tokens.shape[-1]
        if length > self.context_length:
            raise ValueError(f"{length} is more than {self.context_length}")
        positions = torch.arange(0, length, device=tokens.device)
        x = self.dropout(self.position_embedding(positions) + self.token_embedding(tokens))
        for b in self.blocks:
            x = b(x)
        x = self.norm(x)
        return x @ self.token_embedding.weight.mT


def next_token_loss(model: TinyGPT, windows: Tensor) -> Tensor:
    logits = model(windows[:, :-1])
    return F.cross_entropy(logits.transpose(1, 2), windows[:, 1:])


def random_windows(tokens: Tensor, n_windows: int, length: int) -> Tensor:
    n_pieces = tokens.shape[0] // length
    if n_pieces == 0:
        raise ValueError("text is shorter than a window")
    pieces = tokens[: n_pieces * length].reshape(n_pieces, length)
    return pieces[torch.randint(n_pieces, (n_windows,), device=tokens.device)]


def train_gpt(model: TinyGPT, tokens: Tensor, steps: int, batch_size: int = 16,
              learning_rate: float = 3e-3,
              report: Callable[[int, float], None] | None = None) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate)
    model.train(True)
    for step in range(1, steps + 1):
        batch = random_windows(tokens, batch_size, model.context_length + 1)
        optimizer.zero_grad()
        loss = next_token_loss(model, batch)
        loss.backward()
        optimizer.step()
        if report is not None:
            report(step, loss.item())
    model.train(False)


@torch.no_grad()
def generate(model: TinyGPT, prompt: Tensor, n: int, temperature: float = 1.0,
             top_k: int | None = None) -> Tensor:
    if temperature < 0:
        raise ValueError("negative temperature")
    if top_k is not None and top_k < 1:
        raise ValueError("top_k must be positive")
    mode = model.training
    model.eval()
    n_prompt = prompt.shape[1]
    out = torch.cat([prompt, prompt.new_zeros(len(prompt), n)], dim=1)
    for i in range(n_prompt, n_prompt + n):
        logits = model(out[:, max(0, i - model.context_length) : i])[:, -1].float()
        if temperature == 0:
            out[:, i] = logits.argmax(dim=-1)
        else:
            if top_k is not None and top_k < logits.shape[1]:
                least = torch.kthvalue(logits, logits.shape[1] - top_k + 1, keepdim=True).values
                logits = logits.masked_fill(logits < least, -torch.inf)
            out[:, i] = torch.multinomial(F.softmax(logits / temperature, -1), 1)[:, 0]
    model.train(mode)
    return out

