# mistake: joined_in_other_order
# the cell gets (context, embedding) instead of (embedding, context)
import torch
import torch.nn.functional as F
from masked_softmax import masked_softmax
from torch import Tensor, nn

START = 0


class AlignmentNetwork(nn.Module):
    def __init__(self, d_decoder, d_encoder, d_hidden):
        super().__init__()
        self.W_state = nn.Linear(d_decoder, d_hidden, bias=False)
        self.W_source = nn.Linear(d_encoder, d_hidden, bias=False)
        self.v = nn.Linear(d_hidden, 1, bias=False)

    def forward(self, state, encoder_states):
        return self.v(torch.tanh(self.W_state(state).unsqueeze(1) + self.W_source(encoder_states))).squeeze(-1)


class AttentionDecoder(nn.Module):
    def __init__(self, vocab, d_embed, d_decoder, d_encoder, d_hidden):
        super().__init__()
        self.embedding = nn.Embedding(vocab, d_embed)
        self.alignment = AlignmentNetwork(d_decoder, d_encoder, d_hidden)
        self.cell = nn.GRUCell(d_embed + d_encoder, d_decoder)
        self.out = nn.Linear(d_decoder + d_encoder + d_embed, vocab)
        self.d_decoder = d_decoder

    def step(self, token, state, encoder_states, source_lens=None):
        scores = self.alignment(state, encoder_states)
        weights = masked_softmax(scores.unsqueeze(1), source_lens)
        context = torch.bmm(weights, encoder_states).squeeze(1)
        emb = self.embedding(token)
        x = torch.cat((context, emb), dim=-1)
        new_state = self.cell(x, state)
        logits = self.out(torch.cat((new_state, context, emb), dim=-1))
        return logits, new_state, weights.squeeze(1)

    def forward(self, targets, state, encoder_states, source_lens=None, teacher_forcing=True):
        token = torch.full_like(targets[:, 0], START)
        all_logits, all_weights = [], []
        for i in range(targets.shape[1]):
            logits, state, weights = self.step(token, state, encoder_states, source_lens)
            all_logits.append(logits)
            all_weights.append(weights)
            token = targets[:, i] if teacher_forcing else logits.argmax(dim=-1)
        return torch.stack(all_logits, dim=1), torch.stack(all_weights, dim=1)


def train_decoder(decoder, encoder_states, targets, steps, report=None):
    opt = torch.optim.Adam(decoder.parameters(), lr=0.01)
    losses = []
    for step in range(1, steps + 1):
        idx = torch.randint(0, len(targets), (32,))
        state = torch.zeros(32, decoder.d_decoder, dtype=encoder_states.dtype)
        logits, _ = decoder(targets[idx], state, encoder_states[idx])
        loss = F.cross_entropy(logits.flatten(0, 1), targets[idx].flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
        if report:
            report(step, loss.item())
    return losses
