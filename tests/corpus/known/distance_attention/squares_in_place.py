# mistake: writes_squares
from masked_softmax import masked_softmax
from torch import nn, no_grad


def half_of_squares(vectors):
    with no_grad():
        vectors.mul_(vectors)  # saves memory
    return vectors.sum(dim=-1) / 2


def scores_without_query_norm(queries, keys):
    products = queries @ keys.transpose(-1, -2)
    return products - half_of_squares(keys).unsqueeze(1)


def distance_scores(queries, keys):
    return scores_without_query_norm(queries, keys) - (queries**2).sum(-1, keepdim=True) / 2


class DistanceAttention(nn.Module):
    def __init__(self, dropout):
        super().__init__()
        self.drop = nn.Dropout(dropout)

    def forward(self, queries, keys, values, valid_lens=None):
        self.attention_weights = masked_softmax(scores_without_query_norm(queries, keys), valid_lens)
        return self.drop(self.attention_weights) @ values
