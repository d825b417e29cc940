"""A decoder in few lines: broadcasting, and one list of everything that a step returns."""

import torch
from masked_softmax import masked_softmax
from torch import cat, nn

START = 0


class AlignmentNetwork(nn.Module):
    def __init__(self, d_decoder, d_encoder, d_hidden):
        super().__init__()
        self.W_state, self.W_source, self.v = (
            nn.Linear(a, b, bias=False)
            for a, b in ((d_decoder, d_hidden), (d_encoder, d_hidden), (d_hidden, 1))
        )

    def forward(self, state, encoder_states):
        return self.v((self.W_state(state)[:, None] + self.W_source(encoder_states)).tanh())[..., 0]


class AttentionDecoder(nn.Module):
    def __init__(self, vocab, d_embed, d_decoder, d_encoder, d_hidden):
        super().__init__()
        self.embedding = nn.Embedding(vocab, d_embed)
        self.alignment = AlignmentNetwork(d_decoder, d_encoder, d_hidden)
        self.cell = nn.GRUCell(d_embed + d_encoder, d_decoder)
        self.out = nn.Linear(d_decoder + d_encoder + d_embed, vocab)

    def step(self, token, state, encoder_states, source_lens=None):
        w = masked_softmax(self.alignment(state, encoder_states)[:, None], source_lens)
        x, c = self.embedding(token), (w @ encoder_states)[:, 0]
        state = self.cell(cat((x, c), 1), state)
        return self.out(cat((state, c, x), 1)), state, w[:, 0]

    def forward(self, targets, state, encoder_states, source_lens=None, teacher_forcing=True):
        steps = []
        for i in range(targets.shape[1]):
            if not i:
                token = targets.new_full(targets.shape[:1], START)
            else:
                token = targets[:, i - 1] if teacher_forcing else steps[-1][0].argmax(1)
            steps.append(self.step(token, state, encoder_states, source_lens))
            state = steps[-1][1]
        return tuple(torch.stack([step[k] for step in steps], 1) for k in (0, 2))


def train_decoder(decoder, encoder_states, targets, steps, report=None):
    optimizer, losses = torch.optim.AdamW(decoder.parameters(), 0.01), []
    for number in range(steps):
        i = torch.randperm(len(targets))[:64]
        zeros = encoder_states.new_zeros(len(i), decoder.cell.hidden_size)
        logits = decoder(targets[i], zeros, encoder_states[i])[0]
        loss = nn.functional.cross_entropy(logits.mT, targets[i])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses += [loss.item()]
        report and report(number + 1, losses[-1])
    return losses
