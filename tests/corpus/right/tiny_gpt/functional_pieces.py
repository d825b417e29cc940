# note: built from functional pieces (F.embedding, F.linear), windows by unfold and gather of views, generation with the Gumbel-max trick instead of multinomial
from collections.abc import Callable

import torch
from layer_norm import LayerNorm
from torch import Tensor, nn
from torch.nn import functional as F
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
        self.rate = dropout

        def small(n: int) -> nn.Embedding:
            return nn.Embedding.from_pretrained(torch.randn(n, d_model) * 0.1, freeze=False)

        self.token_embedding, self.position_embedding = small(vocab), small(context_length)
        self.blocks = nn.ModuleList()
        while len(self.blocks) < num_layers:
            self.blocks.append(TransformerBlock(d_model, num_heads, 4 * d_model, context_length, dropout))
        self.norm = LayerNorm(d_model)

    def forward(self, tokens: Tensor) -> Tensor:
        n = tokens.size(-1)
        if n > self.context_length:
            raise ValueError(f"{n} tokens do not fit into {self.context_length}")
        E, P = self.token_embedding.weight, self.position_embedding.weight
        x = F.dropout(F.embedding(tokens, E) + P[:n], self.rate, self.training)
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm(x), E)


def next_token_loss(model: TinyGPT, windows: Tensor) -> Tensor:
    logits = model(windows[:, :-1])
    right = logits.gather(-1, windows[:, 1:, None]).squeeze(-1)
    return (logits.logsumexp(-1) - right).mean()


def random_windows(tokens: Tensor, n_windows: int, length: int) -> Tensor:
    if tokens.numel() < length:
        raise ValueError(f"a text of {tokens.numel()} tokens has no window of {length}")
    every = tokens.unfold(0, length, 1)
    return every[torch.randint(every.size(0), (n_windows,), device=tokens.device)]


def train_gpt(
    model: TinyGPT,
    tokens: Tensor,
    steps: int,
    batch_size: int = 16,
    learning_rate: float = 3e-3,
    report: Callable[[int, float], None] | None = None,
) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate)
    model.train()
    for step in range(1, steps + 1):
        loss = next_token_loss(model, random_windows(tokens, batch_size, model.context_length + 1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if report is not None:
            report(step, loss.item())
    model.eval()


@torch.no_grad()
def generate(
    model: TinyGPT,
    prompt: Tensor,
    n: int,
    temperature: float = 1.0,
    top_k: int | None = None,
) -> Tensor:
    if temperature < 0:
        raise ValueError("the temperature is negative")
    if top_k is not None and top_k < 1:
        raise ValueError("top_k is less than 1")
    was_training = model.training
    model.eval()
    try:
        text = prompt
        for _ in range(n):
            logits = model(text[:, -model.context_length :])[:, -1].double()
            if temperature > 0:
                if top_k is not None and top_k < logits.size(-1):
                    smallest = logits.topk(top_k).values[:, -1:]
                    logits = logits.masked_fill(logits < smallest, -torch.inf)
                # argmax of logits / T + Gumbel noise is a draw from the probabilities
                logits = (logits - logits.amax(-1, keepdim=True)) / temperature
                logits = logits - torch.empty_like(logits).exponential_().log()
            text = torch.cat([text, logits.argmax(-1, keepdim=True)], 1)
        return text.clone() if n == 0 else text
    finally:
        model.train(was_training)
