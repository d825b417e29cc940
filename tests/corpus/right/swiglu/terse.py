# right
from torch import nn


def hidden_size(d_model, multiple=256):
    if multiple < 1: raise ValueError
    return (8 * d_model // 3 + multiple - 1) // multiple * multiple


class SwiGLU(nn.Module):
    def __init__(s, d_model, d_ff, dropout=0.0):
        super().__init__()
        s.W_gate, s.W_up, s.W_down = (nn.Linear(a, b, False) for a, b in [(d_model, d_ff)] * 2 + [(d_ff, d_model)])
        s.a, s.d = nn.SiLU(), nn.Dropout(dropout)
    forward = lambda s, x: s.W_down(s.d(s.a(s.W_gate(x)) * s.W_up(x)))
