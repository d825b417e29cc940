# mistake: other_activation
from __future__ import annotations

import torch
from torch import Tensor, nn

from masked_softmax import masked_softmax

START = 0


class AlignmentNetwork(nn.Module):
    """v . tanh(W_state s + W_source h)"""

    def __init__(self, d_decoder: int, d_encoder: int, d_hidden: int):
        super().__init__()
        self.W_state = nn.Linear(d_decoder, d_hidden, bias=False)
        self.W_source = nn.Linear(d_encoder, d_hidden, bias=False)
        self.v = nn.Linear(d_hidden, 1, bias=False)

    def forward(self, state: Tensor, encoder_states: Tensor) -> Tensor:
        n_source = encoder_states.shape[1]
        repeated = self.W_state(state).unsqueeze(1).repeat(1, n_source, 1)
        energy = torch.relu(repeated + self.W_source(encoder_states))
        return energy @ self.v.weight[0]


class AttentionDecoder(nn.Module):
    def __init__(self, vocab: int, d_embed: int, d_decoder: int, d_encoder: int, d_hidden: int):
        super().__init__()
        self.embedding = nn.Embedding(vocab, d_embed)
        self.alignment = AlignmentNetwork(d_decoder, d_encoder, d_hidden)
        self.cell = nn.GRUCell(d_embed + d_encoder, d_decoder)
        self.out = nn.Linear(d_decoder + d_encoder + d_embed, vocab)

    def attend(self, state: Tensor, encoder_states: Tensor, source_lens: Tensor | None):
        scores = self.alignment(state, encoder_states)
        weights = masked_softmax(scores.unsqueeze(1), source_lens).squeeze(1)
        context = (weights.unsqueeze(-1) * encoder_states).sum(dim=1)
        return weights, context

    def step(self, token, state, encoder_states, source_lens=None):
        word = self.embedding(token)
        weights, context = self.attend(state, encoder_states, source_lens)
        new_state = self.cell(torch.cat([word, context], -1), state)
        features = torch.cat([new_state, context, word], -1)
        return self.out(features), new_state, weights

    def forward(self, targets, state, encoder_states, source_lens=None, teacher_forcing=True):
        start = torch.full_like(targets[:, :1], START)
        inputs = torch.cat([start, targets[:, :-1]], dim=1)
        n_target = targets.shape[1]
        all_logits, all_weights = [], []
        token = inputs[:, 0]
        for t in range(n_target):
            logits, state, weights = self.step(token, state, encoder_states, source_lens)
            all_logits.append(logits)
            all_weights.append(weights)
            if t + 1 < n_target:
                token = inputs[:, t + 1] if teacher_forcing else torch.argmax(logits, dim=-1)
        return torch.stack(all_logits, 1), torch.stack(all_weights, 1)


def train_decoder(decoder, encoder_states, targets, steps, report=None):
    optimizer = torch.optim.Adam(decoder.parameters(), lr=1e-2)
    criterion = nn.CrossEntropyLoss()
    history = []
    for step in range(1, steps + 1):
        optimizer.zero_grad()
        batch = torch.randperm(len(targets))[:32]
        source, wanted = encoder_states[batch], targets[batch]
        state = source.new_zeros(len(batch), decoder.cell.hidden_size)
        logits, _ = decoder(wanted, state, source)
        loss = criterion(logits.reshape(-1, logits.shape[-1]), wanted.reshape(-1))
        loss.backward()
        optimizer.step()
        history.append(float(loss))
        if report:
            report(step, float(loss))
    return history
