# style: device property, text and windows moved to the model, sampling on the CPU and back, non-persistent positions
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
        self.register_buffer("positions", torch.arange(context_length), persistent=False)

    @property
    def device(self):
        return self.token_embedding.weight.device

    def forward(self, tokens):
        n = tokens.shape[1]
        if n > self.context_length:
            raise ValueError("too many tokens")
        tokens = tokens.to(self.device)
        x = self.token_embedding(tokens) + self.position_embedding(self.positions[:n]).unsqueeze(0)
        x = self.dropout(x)
        for block in self.blocks:
            x = block(x)
        return torch.einsum("bnd,vd->bnv", self.norm(x), self.token_embedding.weight)


def next_token_loss(model, windows):
    logits = model(windows[:, :-1]).float()
    return F.cross_entropy(logits.mT, windows[:, 1:].to(logits.device))


def random_windows(tokens, n_windows, length):
    if tokens.numel() < length:
        raise ValueError("the text is shorter than one window")
    with torch.device(tokens.device):
        starts = torch.randint(tokens.numel() - length + 1, (n_windows,))
        return tokens.unfold(0, length, 1).index_select(0, starts)


def train_gpt(model, tokens, steps, batch_size=16, learning_rate=3e-3, report=None):
    tokens = tokens.to(next(model.parameters()).device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate)
    model.train()
    for step in range(1, steps + 1):
        optimizer.zero_grad()
        loss = next_token_loss(model, random_windows(tokens, batch_size, model.context_length + 1))
        loss.backward()
        optimizer.step()
        if report is not None:
            report(step, loss.detach().cpu().float().numpy().item())
    model.eval()


@torch.no_grad()
def generate(model, prompt, n, temperature=1.0, top_k=None):
    if temperature < 0:
        raise ValueError("temperature < 0")
    if top_k is not None and top_k < 1:
        raise ValueError("top_k < 1")
    mode = model.training
    model.eval()
    pieces = prompt.clone()
    try:
        for _ in range(n):
            logits = model(pieces[:, -model.context_length:])[:, -1].cpu().float()
            if temperature == 0:
                new = logits.max(dim=-1, keepdim=True).indices
            else:
                if top_k is not None and top_k < logits.shape[-1]:
                    kth = logits.topk(top_k, dim=-1).values[:, -1, None]
                    logits = logits.masked_fill(logits < kth, float("-inf"))
                logits = logits - logits.max(dim=-1, keepdim=True).values
                new = torch.multinomial(F.softmax(logits / temperature, dim=-1), 1)
            pieces = torch.cat([pieces, new.to(pieces.device)], dim=1)
    finally:
        model.train(mode)
    return pieces
