# style: tables indexed by CPU aranges (positions, windows, loss with mixed CPU and device indices), 0-dim CPU -inf
import torch
from torch import nn

from layer_norm import LayerNorm
from transformer_block import TransformerBlock


class TinyGPT(nn.Module):
    def __init__(self, vocab, d_model, num_heads, num_layers, context_length, dropout):
        super().__init__()
        self.context_length = context_length
        self.token_embedding = nn.Embedding(vocab, d_model)
        self.position_embedding = nn.Embedding(context_length, d_model)
        self.blocks = nn.ModuleList(
            [TransformerBlock(d_model, num_heads, 4 * d_model, context_length, dropout)
             for _ in range(num_layers)])
        self.norm = LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        for table in (self.token_embedding, self.position_embedding):
            nn.init.normal_(table.weight, std=0.1)

    def forward(self, tokens):
        places = torch.arange(tokens.shape[1])
        if len(places) > self.context_length:
            raise ValueError(f"{len(places)} tokens are too many")
        words = self.token_embedding.weight
        x = self.dropout(words[tokens] + self.position_embedding.weight[places])
        for block in self.blocks:
            x = block(x)
        return self.norm(x) @ words.T


def next_token_loss(model, windows):
    log_p = model(windows[:, :-1]).log_softmax(dim=-1)
    b, n, _ = log_p.shape
    picked = log_p[torch.arange(b)[:, None], torch.arange(n), windows[:, 1:]]
    return -picked.mean()


def random_windows(tokens, n_windows, length):
    last = len(tokens) - length
    if last < 0:
        raise ValueError("the text is too short for a window")
    return tokens[torch.randint(0, last + 1, (n_windows, 1)) + torch.arange(length)]


def train_gpt(model, tokens, steps, batch_size=16, learning_rate=3e-3, report=None):
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate)
    model.train()
    for step in range(steps):
        loss = next_token_loss(model, random_windows(tokens, batch_size, model.context_length + 1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if report is not None:
            report(step + 1, float(loss.detach()))
    model.eval()


def generate(model, prompt, n, temperature=1.0, top_k=None):
    if temperature < 0:
        raise ValueError("negative temperature")
    if top_k is not None and top_k < 1:
        raise ValueError("top_k must be at least 1")
    mode = model.training
    model.eval()
    text = prompt.clone()
    never = torch.tensor(float("-inf"))
    try:
        with torch.no_grad():
            for _ in range(n):
                logits = model(text[:, -model.context_length:])[:, -1]
                if temperature == 0:
                    new = logits.argmax(dim=1, keepdim=True)
                else:
                    logits = logits.float()
                    if top_k is not None and top_k < logits.shape[1]:
                        kth = torch.topk(logits, top_k, dim=1).values[:, -1:]
                        logits = torch.where(logits < kth, never, logits)
                    logits = logits - logits.max(dim=1, keepdim=True).values
                    new = torch.multinomial(torch.softmax(logits / torch.tensor(temperature), dim=1), 1)
                text = torch.cat([text, new], dim=1)
    finally:
        model.train(mode)
    return text
