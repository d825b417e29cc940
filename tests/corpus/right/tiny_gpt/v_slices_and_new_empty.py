# style: position_embedding.weight[:n], unfold indexed by CPU starts, prompt.new_empty in generate
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
        nn.init.normal_(self.token_embedding.weight, std=0.1)
        nn.init.normal_(self.position_embedding.weight, std=0.1)
        self.blocks = nn.ModuleList(
            TransformerBlock(d_model, num_heads, 4 * d_model, context_length, dropout)
            for _ in range(num_layers))
        self.norm = LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, tokens):
        n = tokens.shape[1]
        if n > self.context_length:
            raise ValueError("too many tokens")
        x = self.dropout(self.token_embedding(tokens) + self.position_embedding.weight[:n])
        for block in self.blocks:
            x = block(x)
        return self.norm(x) @ self.token_embedding.weight.mT


def next_token_loss(model, windows):
    logits = model(windows[:, :-1])
    return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), windows[:, 1:].reshape(-1))


def random_windows(tokens, n_windows, length):
    if len(tokens) < length:
        raise ValueError("the text is shorter than a window")
    windows = tokens.unfold(0, length, 1)
    starts = torch.randint(windows.shape[0], (n_windows,))    # on the CPU, wherever tokens are
    return windows[starts]


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
    b, start = prompt.shape
    text = prompt.new_empty(b, start + n)
    text[:, :start] = prompt
    training = model.training
    model.eval()
    try:
        for i in range(start, start + n):
            logits = model(text[:, max(0, i - model.context_length):i])[:, -1].float()
            if temperature == 0:
                text[:, i] = logits.argmax(dim=-1)
            else:
                if top_k is not None and top_k < logits.shape[-1]:
                    limit = logits.topk(top_k).values[:, -1:]
                    logits = logits.where(logits >= limit, -torch.inf)
                logits = logits - logits.amax(dim=-1, keepdim=True)
                text[:, i:i + 1] = torch.multinomial((logits / temperature).softmax(dim=-1), 1)
    finally:
        model.train(training)
    return text
