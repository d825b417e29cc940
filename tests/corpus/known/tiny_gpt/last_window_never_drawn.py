# mistake: last_place_never_drawn
# random_windows never draws the last place at which a window fits (a text of just one window fails)
import torch
from layer_norm import LayerNorm
from torch import nn
from torch.nn import functional as F
from transformer_block import TransformerBlock


class TinyGPT(nn.Module):
    def __init__(self, vocab, d_model, num_heads, num_layers, context_length, dropout):
        super().__init__()
        self.context_length = context_length
        self.token_embedding = nn.Embedding(vocab, d_model)
        self.position_embedding = nn.Embedding(context_length, d_model)
        for e in (self.token_embedding, self.position_embedding):
            nn.init.normal_(e.weight, mean=0.0, std=0.1)
        self.drop = nn.Dropout(dropout)
        make = lambda: TransformerBlock(d_model, num_heads, 4 * d_model, context_length, dropout)
        self.blocks = nn.ModuleList([make() for _ in range(num_layers)])
        self.norm = LayerNorm(d_model)

    def forward(self, tokens):
        B, T = tokens.shape
        if T > self.context_length:
            raise ValueError(f"cannot forward {T} tokens, block size is {self.context_length}")
        pos = torch.arange(0, T, dtype=torch.long, device=tokens.device)
        x = self.drop(self.token_embedding(tokens) + self.position_embedding(pos))
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm(x), self.token_embedding.weight)


def next_token_loss(model, windows):
    logits = model(windows[:, :-1])
    B, T, C = logits.shape
    return F.cross_entropy(logits.view(B * T, C), windows[:, 1:].reshape(B * T))


def random_windows(tokens, n_windows, length):
    if tokens.shape[0] < length:
        raise ValueError("text is shorter than a window")
    ix = torch.randint(len(tokens) - length, (n_windows,), device=tokens.device)
    offsets = torch.arange(length, device=tokens.device)
    return tokens[ix.unsqueeze(1) + offsets.unsqueeze(0)]


def train_gpt(model, tokens, steps, batch_size=16, learning_rate=3e-3, report=None):
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate)
    model.train()
    for it in range(steps):
        xb = random_windows(tokens, batch_size, model.context_length + 1)
        loss = next_token_loss(model, xb)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if report is not None:
            report(it + 1, loss.item())
    model.eval()


@torch.no_grad()
def generate(model, prompt, n, temperature=1.0, top_k=None):
    if temperature < 0:
        raise ValueError("temperature has to be at least 0")
    if top_k is not None and top_k < 1:
        raise ValueError("top_k has to be at least 1")
    before = model.training
    model.eval()
    idx = prompt
    for _ in range(n):
        logits = model(idx[:, -model.context_length :])[:, -1, :]
        if temperature == 0:
            idx_next = torch.argmax(logits, dim=-1, keepdim=True)
        else:
            logits = logits / temperature
            if top_k is not None:
                v, _ = torch.topk(logits, min(top_k, logits.size(-1)))
                logits[logits < v[:, [-1]]] = -float("inf")
            probs = F.softmax(logits, dim=-1)
            idx_next = torch.multinomial(probs, num_samples=1)
        idx = torch.cat((idx, idx_next), dim=1)
    model.train(before)
    return idx
