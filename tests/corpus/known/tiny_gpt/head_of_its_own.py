# mistake: head_not_tied
# the logits come from a linear layer of its own (lm_head) instead of the token embedding, so there are more parameters
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
        self.drop = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(
            [
                TransformerBlock(d_model, num_heads, 4 * d_model, context_length, dropout)
                for _ in range(num_layers)
            ]
        )
        self.norm = LayerNorm(d_model)
        self.lm_head = nn.Linear(d_model, vocab, bias=False)
        nn.init.normal_(self.token_embedding.weight, std=0.1)
        nn.init.normal_(self.position_embedding.weight, std=0.1)

    def forward(self, tokens: Tensor) -> Tensor:
        n = tokens.shape[1]
        if n > self.context_length:
            raise ValueError("context too long")
        pos = torch.arange(n, device=tokens.device)
        x = self.drop(self.token_embedding(tokens) + self.position_embedding(pos))
        for block in self.blocks:
            x = block(x)
        return self.lm_head(self.norm(x))


def next_token_loss(model, windows):
    logits = model(windows[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten())


def random_windows(tokens, n_windows, length):
    if len(tokens) < length:
        raise ValueError("text too short")
    ix = torch.randint(len(tokens) - length + 1, (n_windows,), device=tokens.device)
    return tokens[ix[:, None] + torch.arange(length, device=tokens.device)]


def train_gpt(model, tokens, steps, batch_size=16, learning_rate=3e-3, report=None):
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
def generate(model, prompt, n, temperature=1.0, top_k=None):
    if temperature < 0:
        raise ValueError("temperature < 0")
    if top_k is not None and top_k < 1:
        raise ValueError("top_k < 1")
    mode = model.training
    model.eval()
    for _ in range(n):
        logits = model(prompt[:, -model.context_length :])[:, -1]
        if temperature == 0:
            new = logits.argmax(-1, keepdim=True)
        else:
            if top_k is not None:
                kth = torch.topk(logits, min(top_k, logits.shape[-1])).values[:, -1:]
                logits = logits.masked_fill(logits < kth, float("-inf"))
            new = torch.multinomial(torch.softmax(logits / temperature, -1), 1)
        prompt = torch.cat([prompt, new], dim=1)
    model.train(mode)
    return prompt
