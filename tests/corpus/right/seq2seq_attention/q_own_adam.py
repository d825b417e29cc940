import torch
from masked_softmax import masked_softmax
from torch import nn

START = 0


class AlignmentNetwork(nn.Module):
    """W_state s + W_source h is one matrix times the joined vector (s, h)."""

    def __init__(self, d_decoder, d_encoder, d_hidden):
        super().__init__()
        for name, sizes in (
            ("W_state", (d_decoder, d_hidden)),
            ("W_source", (d_encoder, d_hidden)),
            ("v", (d_hidden, 1)),
        ):
            setattr(self, name, nn.Linear(*sizes, bias=False))

    def forward(self, state, encoder_states):
        n_source = encoder_states.size(1)
        joined = torch.cat((state[:, None].expand(-1, n_source, -1), encoder_states), dim=2)
        W = torch.cat((self.W_state.weight, self.W_source.weight), dim=1)
        hidden = torch.tanh(joined.matmul(W.t()))
        return hidden.matmul(self.v.weight[0])


class AttentionDecoder(nn.Module):
    def __init__(self, vocab, d_embed, d_decoder, d_encoder, d_hidden):
        super().__init__()
        self.embedding = nn.Embedding(vocab, d_embed)
        self.alignment = AlignmentNetwork(d_decoder, d_encoder, d_hidden)
        self.cell = nn.GRUCell(d_embed + d_encoder, d_decoder)
        self.out = nn.Linear(d_decoder + d_encoder + d_embed, vocab)

    def step(self, token, state, encoder_states, source_lens=None):
        scores = self.alignment(state, encoder_states)[:, None, :]
        weights = masked_softmax(scores, source_lens)  # (batch, 1, n_source)
        context = weights.bmm(encoder_states)[:, 0]
        e = self.embedding(token)
        new_state = self.cell(torch.hstack((e, context)), state)
        logits = self.out(torch.hstack((new_state, context, e)))
        return logits, new_state, weights[:, 0]

    def forward(self, targets, state, encoder_states, source_lens=None, teacher_forcing=True):
        batch, n_target = targets.shape
        shifted = torch.cat((targets.new_full((batch, 1), START), targets[:, :-1]), dim=1)
        all_logits, all_weights = [], []
        for i in range(n_target):
            if teacher_forcing or i == 0:
                token = shifted[:, i]
            else:
                token = all_logits[-1].squeeze(1).max(dim=1).indices
            logits, state, weights = self.step(token, state, encoder_states, source_lens)
            all_logits.append(logits.unsqueeze(1))
            all_weights.append(weights.unsqueeze(1))
        return torch.cat(all_logits, dim=1), torch.cat(all_weights, dim=1)


class _Adam:
    def __init__(self, parameters, lr=0.01, beta1=0.9, beta2=0.999, eps=1e-8):
        self.parameters = list(parameters)
        self.lr, self.beta1, self.beta2, self.eps = lr, beta1, beta2, eps
        self.first = [torch.zeros_like(p) for p in self.parameters]
        self.second = [torch.zeros_like(p) for p in self.parameters]
        self.count = 0

    @torch.no_grad()
    def move(self, gradients):
        self.count += 1
        c1, c2 = 1 - self.beta1**self.count, 1 - self.beta2**self.count
        for p, g, m, s in zip(self.parameters, gradients, self.first, self.second):
            m.lerp_(g, 1 - self.beta1)
            s.lerp_(g * g, 1 - self.beta2)
            p -= self.lr * (m / c1) / ((s / c2).sqrt() + self.eps)


def train_decoder(decoder, encoder_states, targets, steps, report=None):
    adam = _Adam(decoder.parameters())
    losses = []
    while len(losses) < steps:
        rows = torch.randint(targets.size(0), (min(48, targets.size(0)),), device=targets.device)
        states, wanted = encoder_states.detach()[rows], targets[rows]
        zero = states.new_zeros(states.size(0), decoder.cell.hidden_size)
        logits, _ = decoder(wanted, zero, states)
        log_p = logits.log_softmax(-1).gather(2, wanted.unsqueeze(2))
        loss = -log_p.mean()
        adam.move(torch.autograd.grad(loss, adam.parameters))
        losses.append(float(loss))
        if report:
            report(len(losses), losses[-1])
    return losses
