# style: unusual
import torch
import torch.nn.functional as F
from torch import nn
from masked_softmax import masked_softmax

START = 0


class AlignmentNetwork(nn.Module):
    def __init__(self, d_decoder, d_encoder, d_hidden):
        super().__init__()
        self.W_state = nn.Linear(d_decoder, d_hidden, bias=False)
        self.W_source = nn.Linear(d_encoder, d_hidden, bias=False)
        self.v = nn.Linear(d_hidden, 1, bias=False)

    def forward(self, state, encoder_states):
        # (b, 1, h) + (b, n, h)
        energy = self.W_state(state)[:, None, :] + self.W_source(encoder_states)
        return torch.einsum("bnh,h->bn", torch.tanh(energy), self.v.weight.squeeze(0))


class AttentionDecoder(nn.Module):
    def __init__(self, vocab, d_embed, d_decoder, d_encoder, d_hidden):
        super().__init__()
        self.embedding = nn.Embedding(vocab, d_embed)
        self.alignment = AlignmentNetwork(d_decoder, d_encoder, d_hidden)
        self.cell = nn.GRUCell(d_embed + d_encoder, d_decoder)
        self.out = nn.Linear(d_decoder + d_encoder + d_embed, vocab)

    def step(self, token, state, encoder_states, source_lens=None):
        e = self.alignment(state, encoder_states)
        a = masked_softmax(e[:, None, :], source_lens)[:, 0]
        ctx = torch.einsum("bn,bnd->bd", a, encoder_states)
        emb = self.embedding(token)
        h = self.cell(torch.cat((emb, ctx), 1), state)
        y = self.out(torch.cat((h, ctx, emb), 1))
        return y, h, a

    def inputs(self, targets):
        """START and all targets but the last"""
        start = torch.zeros_like(targets[:, :1]) + START
        return torch.cat((start, targets[:, :-1]), dim=1)

    def forward(self, targets, state, encoder_states, source_lens=None, teacher_forcing=True):
        given = self.inputs(targets)
        token = given[:, 0]
        ys, alphas = [], []
        for i in range(targets.shape[1]):
            if i > 0:
                token = given[:, i] if teacher_forcing else ys[-1].argmax(1)
            y, state, a = self.step(token, state, encoder_states, source_lens)
            ys.append(y)
            alphas.append(a)
        return torch.stack(ys, 1), torch.stack(alphas, 1)


def train_decoder(decoder, encoder_states, targets, steps, report=None):
    opt = torch.optim.Adam(decoder.parameters(), lr=1e-2)
    n = targets.shape[0]
    size = min(n, 32)
    history = []
    decoder.train()
    for k in range(steps):
        pick = torch.randperm(n, device=targets.device)[:size]
        src, tgt = encoder_states[pick], targets[pick]
        h0 = torch.zeros(size, decoder.cell.hidden_size, dtype=src.dtype, device=src.device)
        logits, _ = decoder(tgt, h0, src, teacher_forcing=True)
        loss = F.cross_entropy(logits.transpose(1, 2), tgt)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        history.append(loss.item())
        if report:
            report(k + 1, history[-1])
    return history
