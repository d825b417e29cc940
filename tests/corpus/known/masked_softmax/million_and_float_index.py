# mistake: uniform_at_length_zero + integer_lengths_only
import torch


def masked_softmax(X, valid_lens=None):
    if valid_lens is None:
        return X.softmax(-1)
    B, Q, K = X.shape
    if valid_lens.ndim == 1:
        if valid_lens.shape[0] != B:
            raise ValueError("one length per batch item, please")
        valid_lens = valid_lens.reshape(B, 1)
    elif valid_lens.ndim != 2 or valid_lens.shape != (B, Q):
        raise ValueError("one length per query, please")
    if valid_lens.max().item() > K:
        raise ValueError("length > number of keys")
    # row n of the table has n ones
    rows = torch.ones(K + 1, K).tril(-1).to(X.dtype)
    ok = rows[valid_lens].expand(B, Q, K)
    scores = torch.where(ok == 1, X, -1e6)
    return scores.softmax(-1)
