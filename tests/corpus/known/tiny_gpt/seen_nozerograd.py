# mistake: gradients_not_zeroed
# seen: wenet-e2e/wekws pull 73 and TennisCourtDetector issue 7: the gradients are not set to zero between the steps, so they add up.
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
        self.token_embedding = nn.Embedding(vocab, d_model)
        self.position_embedding = nn.Embedding(context_length, d_model)
        nn.init.normal_(self.token_embedding.weight, mean=0.0, std=0.1)
        nn.init.normal_(self.position_embedding.weight, mean=0.0, std=0.1)
        self.dropout = nn.Dropout(dropout)
        blocks = []
        for _ in range(num_layers):
            blocks.append(TransformerBlock(d_model, num_heads, 4 * d_model, context_length, dropout))
        self.blocks = nn.ModuleList(blocks)
        self.norm = LayerNorm(d_model)

    def forward(self, tokens: Tensor) -> Tensor:
        if tokens.shape[1] > self.context_length:
            raise ValueError("the text is longer than the context")
        places = torch.arange(tokens.shape[1], device=tokens.device)
        hidden = self.dropout(self.token_embedding(tokens) + self.position_embedding(places))
        for block in self.blocks:
            hidden = block(hidden)
        return F.linear(self.norm(hidden), self.token_embedding.weight)


def next_token_loss(model: TinyGPT, windows: Tensor) -> Tensor:
    inputs, targets = windows[:, :-1], windows[:, 1:]
    log_probs = model(inputs).log_softmax(dim=-1)
    return -log_probs.gather(-1, targets.unsqueeze(-1)).mean()


def random_windows(tokens: Tensor, n_windows: int, length: int) -> Tensor:
    places = tokens.numel() - length + 1
    if places < 1:
        raise ValueError(f"the text has no {length} tokens")
    start = torch.randint(places, (n_windows, 1)).to(tokens.device)
    return tokens[start + torch.arange(length, device=tokens.device)]


def train_gpt(
    model: TinyGPT,
    tokens: Tensor,
    steps: int,
    batch_size: int = 16,
    learning_rate: float = 3e-3,
    report: Callable[[int, float], None] | None = None,
) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate)
    for step in range(1, steps + 1):
        model.train()
        windows = random_windows(tokens, batch_size, model.context_length + 1)
        loss = next_token_loss(model, windows)
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
        raise ValueError(f"temperature {temperature} is negative")
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k = {top_k} leaves no token")
    was_training = model.training
    model.eval()
    text = prompt.clone()
    for _ in range(n):
        logits = model(text[:, -model.context_length :])[:, -1].float()
        if temperature == 0:
            token = logits.argmax(dim=-1, keepdim=True)
        else:
            if top_k is not None:
                best = logits.topk(min(top_k, logits.size(-1)), dim=-1).values
                logits = logits.masked_fill(logits < best[:, -1:], float("-inf"))
            logits = logits - logits.amax(dim=-1, keepdim=True)
            token = torch.multinomial(torch.softmax(logits / temperature, dim=-1), 1)
        text = torch.cat([text, token], dim=1)
    model.train(was_training)
    return text
