"""A decoder in many small steps, with an alignment that takes states and places apart."""

import math

import torch
import torch.nn.functional as F
from masked_softmax import masked_softmax
from torch import nn

START = 0


class AlignmentNetwork(nn.Module):
    def __init__(self, d_decoder, d_encoder, d_hidden):
        super().__init__()
        self.W_state = nn.Linear(d_decoder, d_hidden, bias=False)
        self.W_source = nn.Linear(d_encoder, d_hidden, bias=False)
        self.v = nn.Linear(d_hidden, 1, bias=False)

    def forward(self, state, encoder_states):
        # One matrix for (state, encoder state) joined is the sum of both products.
        both = torch.cat([self.W_state.weight, self.W_source.weight], dim=1)
        n_source = encoder_states.size(1)
        pairs = torch.cat([state.unsqueeze(1).expand(-1, n_source, -1), encoder_states], dim=2)
        hidden = F.linear(pairs, both).tanh()
        return F.linear(hidden, self.v.weight).flatten(1)


class AttentionDecoder(nn.Module):
    def __init__(self, vocab, d_embed, d_decoder, d_encoder, d_hidden):
        super().__init__()
        self.d_decoder = d_decoder
        self.embedding = nn.Embedding(vocab, d_embed)
        self.alignment = AlignmentNetwork(d_decoder, d_encoder, d_hidden)
        self.cell = nn.GRUCell(d_embed + d_encoder, d_decoder)
        self.out = nn.Linear(d_decoder + d_encoder + d_embed, vocab)

    def look(self, state, encoder_states, source_lens):
        scores = self.alignment(state, encoder_states)
        weights = masked_softmax(scores.unsqueeze(1), source_lens)
        return weights.squeeze(1), torch.bmm(weights, encoder_states).squeeze(1)

    def step(self, token, state, encoder_states, source_lens=None):
        weights, context = self.look(state, encoder_states, source_lens)
        word = F.embedding(token, self.embedding.weight)
        state = self.cell(torch.hstack([word, context]), state)
        logits = self.out(torch.hstack([state, context, word]))
        return logits, state, weights

    def forced(self, targets, state, encoder_states, source_lens):
        token = torch.full_like(targets[:, 0], START)
        for following in targets.T:
            logits, state, weights = self.step(token, state, encoder_states, source_lens)
            yield logits, weights
            token = following

    def free(self, n_target, token, state, encoder_states, source_lens):
        for _ in range(n_target):
            logits, state, weights = self.step(token, state, encoder_states, source_lens)
            yield logits, weights
            token = logits.detach().max(dim=1).indices

    def forward(self, targets, state, encoder_states, source_lens=None, teacher_forcing=True):
        if teacher_forcing:
            made = self.forced(targets, state, encoder_states, source_lens)
        else:
            start = torch.full_like(targets[:, 0], START)
            made = self.free(targets.size(1), start, state, encoder_states, source_lens)
        logits, weights = zip(*made)
        return torch.stack(logits, dim=1), torch.stack(weights, dim=1)


def batches(n_examples, size, steps):
    """Yield the places of each batch; all examples come once before any comes again."""
    left = torch.empty(0, dtype=torch.long)
    for _ in range(steps):
        if len(left) == 0:
            left = torch.randperm(n_examples)
        yield left[:size]
        left = left[size:]


def train_decoder(decoder, encoder_states, targets, steps, report=None):
    decoder.train()
    parameters = list(decoder.parameters())
    optimizer = torch.optim.Adam(parameters, lr=0.01)
    losses = []
    for number, places in enumerate(batches(len(targets), 32, steps), start=1):
        source, wanted = encoder_states[places], targets[places]
        state = torch.zeros(len(places), decoder.d_decoder, dtype=source.dtype)
        logits, _ = decoder(wanted, state, source, teacher_forcing=True)
        of_each = F.cross_entropy(logits.transpose(1, 2), wanted, reduction="none")
        loss = of_each.sum() / math.prod(of_each.shape)
        for parameter, grad in zip(parameters, torch.autograd.grad(loss, parameters)):
            parameter.grad = grad
        torch.nn.utils.clip_grad_norm_(parameters, 5.0)
        optimizer.step()
        losses.append(loss.detach().item())
        if report:
            report(number, losses[-1])
    return losses
