# promise: positions are a plain tensor attribute, looked up in the embedding without a move
import torch
from torch import nn
import torch.nn.functional as F

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
            for _ in range(num_layers)
        )
        self.norm = LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        self.positions = torch.arange(context_length)

    def forward(self, tokens):
        n = tokens.shape[1]
        if n > self.context_length:
            raise ValueError(f"{n} tokens are more than {self.context_length}")
        x = self.token_embedding(tokens) + self.position_embedding(self.positions[:n])
        x = self.dropout(x)
        for block in self.blocks:
            x = block(x)
        return self.norm(x) @ self.token_embedding.weight.T


def next_token_loss(model, windows):
    logits = model(windows[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten())


def random_windows(tokens, n_windows, length):
    n_places = len(tokens) - length + 1
    if n_places < 1:
        raise ValueError("the text is shorter than a window")
    starts = torch.randint(n_places, (n_windows, 1), device=tokens.device)
    return tokens[starts + torch.arange(length, device=tokens.device)]


def train_gpt(model, tokens, steps, batch_size=16, learning_rate=3e-3, report=None):
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate)
    model.train()
    for step in range(1, steps + 1):
        windows = random_windows(tokens, batch_size, model.context_length + 1)
        loss = next_token_loss(model, windows)
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
    was_training = model.training
    model.eval()
    try:
        text = prompt.clone()
        for _ in range(n):
            logits = model(text[:, -model.context_length:])[:, -1].float()
            if temperature == 0:
                new = logits.argmax(dim=-1, keepdim=True)
            else:
                if top_k is not None and top_k < logits.shape[-1]:
                    smallest = logits.topk(top_k).values[:, -1:]
                    logits = logits.masked_fill(logits < smallest, float("-inf"))
                logits = logits - logits.max(dim=-1, keepdim=True).values
                new = torch.multinomial(torch.softmax(logits / temperature, dim=-1), 1)
            text = torch.cat((text, new), dim=1)
        return text
    finally:
        model.train(was_training)
