# mistake: tokens_scaled_up
import torch
import torch.nn as nn
from torch.nn import functional as F

from layer_norm import LayerNorm
from transformer_block import TransformerBlock


class TinyGPT(nn.Module):
    def __init__(self, vocab, d_model, num_heads, num_layers, context_length, dropout):
        super().__init__()
        self.context_length = context_length
        self.token_embedding = nn.Embedding(vocab, d_model)
        self.position_embedding = nn.Embedding(context_length, d_model)
        self.drop = nn.Dropout(dropout)
        self.blocks = nn.ModuleList()
        for _ in range(num_layers):
            block = TransformerBlock(d_model, num_heads, 4 * d_model, context_length, dropout)
            self.blocks.append(block)
        self.norm = LayerNorm(d_model)
        nn.init.normal_(self.token_embedding.weight, mean=0.0, std=0.1)
        nn.init.normal_(self.position_embedding.weight, mean=0.0, std=0.1)

    def forward(self, tokens):
        b, t = tokens.size()
        if t > self.context_length:
            raise ValueError("sequence too long")
        pos = torch.arange(t, dtype=torch.long, device=tokens.device)
        tok_emb = self.token_embedding(tokens)
        pos_emb = self.position_embedding(pos)
        h = self.drop(tok_emb * tok_emb.size(-1) ** 0.5 + pos_emb)
        for block in self.blocks:
            h = block(h)
        h = self.norm(h)
        return F.linear(h, self.token_embedding.weight)


def next_token_loss(model, windows):
    inputs, targets = windows[:, :-1], windows[:, 1:]
    logits = model(inputs)
    return F.cross_entropy(logits.transpose(1, 2), targets)


def random_windows(tokens, n_windows, length):
    if length > tokens.shape[0]:
        raise ValueError("text too short")
    ix = torch.randint(0, tokens.shape[0] - length + 1, (n_windows,))
    return tokens.unfold(0, length, 1)[ix]


def train_gpt(model, tokens, steps, batch_size=16, learning_rate=3e-3, report=None):
    opt = torch.optim.AdamW(model.parameters(), lr=learning_rate)
    model.train()
    for i in range(steps):
        batch = random_windows(tokens, batch_size, model.context_length + 1)
        loss = next_token_loss(model, batch)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if report:
            report(i + 1, loss.item())
    model.eval()


@torch.no_grad()
def generate(model, prompt, n, temperature=1.0, top_k=None):
    if temperature < 0:
        raise ValueError("temperature")
    if top_k is not None and top_k < 1:
        raise ValueError("top_k")
    mode = model.training
    model.eval()
    idx = prompt
    for _ in range(n):
        idx_cond = idx[:, -model.context_length :]
        logits = model(idx_cond)[:, -1, :]
        if temperature == 0:
            idx_next = torch.argmax(logits, dim=-1)[:, None]
        else:
            logits = logits / temperature
            if top_k is not None:
                v, _ = torch.topk(logits, min(top_k, logits.size(-1)))
                logits[logits < v[:, [-1]]] = -float("inf")
            probs = F.softmax(logits, dim=-1)
            idx_next = torch.multinomial(probs, num_samples=1)
        idx = torch.cat((idx, idx_next), dim=1)
    model.train(mode)
    return idx
