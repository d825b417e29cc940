# mistake: logits_of_state_alone
import torch
import torch.nn as nn
import torch.nn.functional as F

from masked_softmax import masked_softmax

START = 0


class AlignmentNetwork(nn.Module):
    def __init__(self, d_decoder, d_encoder, d_hidden):
        super().__init__()
        self.W_state = nn.Linear(d_decoder, d_hidden, bias=False)
        self.W_source = nn.Linear(d_encoder, d_hidden, bias=False)
        self.v = nn.Linear(d_hidden, 1, bias=False)

    def forward(self, state, encoder_states):
        s = self.W_state(state)[:, None, :]
        h = self.W_source(encoder_states)
        return self.v(torch.tanh(s + h))[:, :, 0]


class AttentionDecoder(nn.Module):
    def __init__(self, vocab, d_embed, d_decoder, d_encoder, d_hidden):
        super().__init__()
        self.d_decoder = d_decoder
        self.embedding = nn.Embedding(vocab, d_embed)
        self.alignment = AlignmentNetwork(d_decoder, d_encoder, d_hidden)
        self.cell = nn.GRUCell(d_embed + d_encoder, d_decoder)
        self.out = nn.Linear(d_decoder, vocab)

    def step(self, token, state, encoder_states, source_lens=None):
        y = self.embedding(token)
        e = self.alignment(state, encoder_states)
        a = masked_softmax(e[:, None, :], source_lens)
        c = torch.bmm(a, encoder_states)[:, 0, :]
        s = self.cell(torch.cat((y, c), dim=1), state)
        logits = self.out(s)
        return logits, s, a[:, 0, :]

    def forward(self, targets, state, encoder_states, source_lens=None, teacher_forcing=True):
        batch, n_target = targets.shape
        token = torch.zeros(batch, dtype=torch.long)
        logits, alignment = [], []
        for t in range(n_target):
            step_logits, state, a = self.step(token, state, encoder_states, source_lens)
            logits.append(step_logits)
            alignment.append(a)
            if teacher_forcing:
                token = targets[:, t]
            else:
                token = step_logits.argmax(dim=1)
        return torch.stack(logits, dim=1), torch.stack(alignment, dim=1)


def train_decoder(decoder, encoder_states, targets, steps, report=None):
    opt = torch.optim.Adam(decoder.parameters(), lr=0.01)
    losses = []
    for i in range(steps):
        idx = torch.randint(0, targets.shape[0], (32,))
        s0 = torch.zeros(32, decoder.d_decoder, dtype=encoder_states.dtype)
        logits, _ = decoder(targets[idx], s0, encoder_states[idx], teacher_forcing=True)
        loss = F.cross_entropy(logits.transpose(1, 2), targets[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
        if report is not None:
            report(i + 1, loss.item())
    return losses
