# promise: causal is not passed on to the attention, so causal=False still masks.
r"""# Transformer block

A Transformer repeats one block. The block carries each token along a residual
stream: attention adds information from other positions, then the feed-forward
network adds what it computes from the result. A norm keeps the values in a
stable range. It can be in one of two places:

    pre-norm  (norm_first=True)      x = x + attention(norm1(x))
                                     x = x + feed_forward(norm2(x))

    post-norm (norm_first=False)     x = norm1(x + attention(x))
                                     x = norm2(x + feed_forward(x))

In each line, x on the right is the result of the line above. In training,
dropout is applied to the outputs of attention and feed_forward before they
are added: x itself is never dropped. At rate 1, both add nothing.

Write

    TransformerBlock(d_model, num_heads, d_ff, context_length,
                     dropout=0.0, norm_first=True, causal=True)

an nn.Module made of your own earlier modules:

    attention      MultiHeadAttention(d_model, d_model, context_length,
                                      dropout, num_heads, causal=causal)
    feed_forward   FeedForward(d_model, d_ff, dropout)
    norm1, norm2   LayerNorm(d_model), one for each sub-layer

    forward(x)
    x        (batch, n_tokens, d_model)
    returns  (batch, n_tokens, d_model)      dtype of x

There are no other parameters, so the names in the state_dict are
attention.W_query.weight ... feed_forward.linear1.weight ... norm1.gamma ...

Requirements
  - With attention.out_proj and feed_forward.linear2 set to zero, a pre-norm
    block returns x, also in training.
  - In eval mode nothing is dropped.
  - With causal=True, no token attends to a later one. With causal=False, the
    block does not know the order of the tokens: permuted tokens give permuted
    outputs. (With the causal mask they do not.)
  - n_tokens may be anything up to context_length. For more tokens, the block
    raises the ValueError of the attention.
  - The block supports .to(dtype), including bfloat16.
  - x may be a view that is not contiguous. It is not modified.
  - No Python loop runs over batch or tokens.
  - nn.Transformer and its layers, and nn.MultiheadAttention, are not allowed.

Only the wiring is graded here: the grader replaces the three parts by correct
ones with the same interface, so a mistake in an earlier exercise does not cost
you points again. In your own copy, and in one more check that is worth no
points, the block runs on your own parts: finish them first.

Example (d_model 2, one head, d_ff 3, pre-norm, causal)

    W_query = W_key = 0       each token attends evenly to itself and the past
    W_value = identity        out_proj.weight = -3 * identity
    linear1.weight = [[1., 0.], [0., 1.], [0., 0.]]
    linear2.weight = [[2., 0., 0.], [0., 2., 0.]]
    all biases 0, norms fresh

    x                 = [[1., 3.], [5., 1.]]     one sentence of two tokens
    norm1(x)          = [[-1., 1.], [1., -1.]]
    attention         = [[3., -3.], [0., 0.]]
    x after attention = [[4., 0.], [5., 1.]]
    norm2             = [[1., -1.], [1., -1.]]
    feed_forward      = [[2., 0.], [2., 0.]]
    output            = [[6., 0.], [7., 1.]]     (4 decimals)

Write it by hand. These names of torch are not accepted here:
TransformerEncoderLayer, TransformerDecoderLayer, Transformer,
transformer_encoder_layer, MultiheadAttention, multi_head_attention.

What is new: The parts in one layer, each added to what came in.

From: Attention Is All You Need (2017)
"""

from feed_forward import FeedForward
from layer_norm import LayerNorm
from multi_head_attention import MultiHeadAttention
from torch import Tensor, nn


class TransformerBlock(nn.Module):
    """Attention, then feed-forward, each with a norm and a residual connection."""

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        context_length: int,
        dropout: float = 0.0,
        norm_first: bool = True,
        causal: bool = True,
    ) -> None:
        super().__init__()
        self.causal = causal
        self.attention = MultiHeadAttention(
            d_model, d_model, context_length, dropout, num_heads
        )
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.norm1 = LayerNorm(d_model)
        self.norm2 = LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        self.norm_first = norm_first

    def forward(self, x: Tensor) -> Tensor:
        """Map x (batch, n_tokens, d_model) to the same shape and dtype."""
        if self.norm_first:
            x = x + self.dropout(self.attention(self.norm1(x)))
            x = x + self.dropout(self.feed_forward(self.norm2(x)))
        else:
            x = self.norm1(x + self.dropout(self.attention(x)))
            x = self.norm2(x + self.dropout(self.feed_forward(x)))
        return x
