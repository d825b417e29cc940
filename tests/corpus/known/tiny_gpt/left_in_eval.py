# mistake: mode_not_restored
# generate leaves the model in eval mode, also if it was in training mode before
import torch
import torch.nn as nn
import torch.nn.functional as F
from layer_norm import LayerNorm
from torch import Tensor
from transformer_block import TransformerBlock


class TinyGPT(nn.Module):
    def __init__(
        self,
        vocab: int,
        d_model: int,
        num_heads: int,
        num_layers: int,
        context_length: int,
        dropout: float,
    ) -> None:
        super().__init__()
        self.context_length = context_length
        self.token_embedding = nn.Embedding(vocab, d_model)
        self.position_embedding = nn.Embedding(context_length, d_model)
        nn.init.normal_(self.token_embedding.weight, 0, 0.1)
        nn.init.normal_(self.position_embedding.weight, 0, 0.1)
        self.embedding_dropout = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(
            TransformerBlock(d_model, num_heads, 4 * d_model, context_length, dropout=dropout)
            for _ in range(num_layers)
        )
        self.norm = LayerNorm(d_model)

    def forward(self, tokens: Tensor) -> Tensor:
        _, n_tokens = tokens.shape
        if n_tokens > self.context_length:
            raise ValueError("more tokens than context_length")
        where = torch.arange(n_tokens, device=tokens.device)
        x = self.embedding_dropout(self.token_embedding(tokens) + self.position_embedding(where))
        for block in self.blocks:
            x = block(x)
        return torch.matmul(self.norm(x), self.token_embedding.weight.t())


def next_token_loss(model: TinyGPT, windows: Tensor) -> Tensor:
    log_probs = F.log_softmax(model(windows[:, :-1]), dim=-1)
    picked = torch.gather(log_probs, 2, windows[:, 1:].unsqueeze(2))
    return -picked.mean()


def random_windows(tokens: Tensor, n_windows: int, length: int) -> Tensor:
    n = tokens.numel() - length + 1
    if n <= 0:
        raise ValueError("the text must be at least as long as a window")
    first = torch.randint(n, (n_windows,), device=tokens.device)
    return tokens.unfold(0, length, 1)[first]


def train_gpt(model, tokens, steps, batch_size=16, learning_rate=3e-3, report=None) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), learning_rate)
    for step in range(1, steps + 1):
        model.train()
        optimizer.zero_grad()
        loss = next_token_loss(model, random_windows(tokens, batch_size, model.context_length + 1))
        loss.backward()
        optimizer.step()
        if report:
            report(step, loss.item())
    model.eval()


@torch.no_grad()
def generate(model, prompt: Tensor, n: int, temperature: float = 1.0, top_k: int | None = None) -> Tensor:
    if temperature < 0 or (top_k is not None and top_k <= 0):
        raise ValueError("bad temperature or top_k")
    model.eval()
    out = prompt
    for _ in range(n):
        logits = model(out[:, -model.context_length :])[:, -1]
        if temperature == 0:
            choice = logits.argmax(-1)[:, None]
        else:
            if top_k is not None and top_k < logits.shape[1]:
                limit = logits.sort(dim=-1, descending=True).values[:, top_k - 1 : top_k]
                logits = logits.masked_fill(logits < limit, -torch.inf)
            choice = torch.multinomial((logits / temperature).softmax(-1), 1)
        out = torch.cat([out, choice], -1)
    return out
