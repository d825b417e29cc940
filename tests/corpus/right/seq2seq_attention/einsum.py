"""A decoder whose sums are einsums; forward shifts the targets once, instead of token by token."""

import torch
from masked_softmax import masked_softmax
from torch import nn


class AlignmentNetwork(nn.Module):
    def __init__(self, d_decoder, d_encoder, d_hidden):
        super().__init__()
        self.W_state = nn.Linear(d_decoder, d_hidden, bias=False)
        self.W_source = nn.Linear(d_encoder, d_hidden, bias=False)
        self.v = nn.Linear(d_hidden, 1, bias=False)

    def forward(self, state, encoder_states):
        query = torch.einsum("bd,hd->bh", state, self.W_state.weight)
        keys = torch.einsum("bsd,hd->sbh", encoder_states, self.W_source.weight)
        return torch.einsum("sbh,h->bs", torch.tanh(keys + query), self.v.weight[0])


class AttentionDecoder(nn.Module):
    def __init__(self, vocab, d_embed, d_decoder, d_encoder, d_hidden):
        super().__init__()
        self.embedding = nn.Embedding(vocab, d_embed)
        self.alignment = AlignmentNetwork(d_decoder, d_encoder, d_hidden)
        self.cell = nn.GRUCell(d_embed + d_encoder, d_decoder)
        self.out = nn.Linear(d_decoder + d_encoder + d_embed, vocab)

    def step(self, token, state, encoder_states, source_lens=None):
        scores = self.alignment(state, encoder_states)
        weights = masked_softmax(scores.unsqueeze(1), source_lens).squeeze(1)
        context = torch.einsum("bs,bsd->bd", weights, encoder_states)
        embedded = self.embedding(token)
        state = self.cell(torch.cat([embedded, context], dim=-1), state)
        return self.out(torch.cat([state, context, embedded], dim=-1)), state, weights

    def forward(self, targets, state, encoder_states, source_lens=None, teacher_forcing=True):
        given = torch.cat([torch.zeros_like(targets[:, :1]), targets[:, :-1]], dim=1)
        logits, alignment = [], []
        for i in range(targets.shape[1]):
            token = given[:, i] if teacher_forcing or i == 0 else logits[-1].argmax(dim=-1)
            scores, state, weights = self.step(token, state, encoder_states, source_lens)
            logits.append(scores)
            alignment.append(weights)
        return torch.stack(logits, dim=1), torch.stack(alignment, dim=1)


def train_decoder(decoder, encoder_states, targets, steps, report=None):
    optimizer = torch.optim.Adam(decoder.parameters(), lr=0.01)
    first = torch.zeros(32, decoder.cell.hidden_size, dtype=encoder_states.dtype)
    losses = []
    for step in range(1, steps + 1):
        optimizer.zero_grad()
        drawn = torch.randint(0, len(targets), (32,))
        logits, _ = decoder(targets[drawn], first, encoder_states[drawn])
        logs = torch.log_softmax(logits, dim=-1)
        right = torch.nn.functional.one_hot(targets[drawn], logits.shape[-1]).to(logs)
        loss = -torch.einsum("btv,btv->bt", logs, right).mean()
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
        if report is not None:
            report(step, float(loss))
    return losses
