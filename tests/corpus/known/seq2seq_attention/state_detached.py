# mistake: detached_state
# the state is detached after each step, so gradients do not run back through the steps (the first state gets those of the first step only)
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
        n = encoder_states.shape[1]
        s = self.W_state(state).unsqueeze(1).expand(-1, n, -1)
        e = torch.tanh(s + self.W_source(encoder_states))
        return self.v(e).squeeze(-1)


class AttentionDecoder(nn.Module):
    def __init__(self, vocab, d_embed, d_decoder, d_encoder, d_hidden):
        super().__init__()
        self.embedding = nn.Embedding(vocab, d_embed)
        self.alignment = AlignmentNetwork(d_decoder, d_encoder, d_hidden)
        self.cell = nn.GRUCell(d_embed + d_encoder, d_decoder)
        self.out = nn.Linear(d_decoder + d_encoder + d_embed, vocab)

    def step(self, token, state, encoder_states, source_lens=None):
        emb = self.embedding(token)
        w = masked_softmax(self.alignment(state, encoder_states).unsqueeze(1), source_lens)
        ctx = w.bmm(encoder_states).squeeze(1)
        state = self.cell(torch.cat([emb, ctx], 1), state)
        return self.out(torch.cat([state, ctx, emb], 1)), state, w.squeeze(1)

    def forward(self, targets, state, encoder_states, source_lens=None, teacher_forcing=True):
        token = torch.full_like(targets[:, 0], START)
        logits, alignment = [], []
        for t in range(targets.shape[1]):
            out, state, w = self.step(token, state, encoder_states, source_lens)
            state = state.detach()  # the graph would grow with every token
            logits.append(out)
            alignment.append(w)
            token = targets[:, t] if teacher_forcing else out.argmax(1)
        return torch.stack(logits, 1), torch.stack(alignment, 1)


def train_decoder(decoder, encoder_states, targets, steps, report=None):
    optimizer = torch.optim.Adam(decoder.parameters(), lr=0.01)
    losses = []
    for step in range(1, steps + 1):
        idx = torch.randint(targets.shape[0], (32,))
        h0 = torch.zeros(32, decoder.cell.hidden_size, dtype=encoder_states.dtype)
        optimizer.zero_grad()
        logits, _ = decoder(targets[idx], h0, encoder_states[idx])
        loss = F.cross_entropy(logits.permute(0, 2, 1), targets[idx])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if report is not None:
            report(step, losses[-1])
    return losses
