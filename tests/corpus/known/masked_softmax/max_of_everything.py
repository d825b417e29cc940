# mistake: one_global_maximum
import torch


def masked_softmax(X, valid_lens):
    batch, n_q, n_k = X.shape
    if valid_lens is None:
        valid = torch.ones(batch, n_q, n_k, dtype=torch.bool)
    else:
        if tuple(valid_lens.shape) == (batch,):
            lengths = valid_lens[:, None, None]
        elif tuple(valid_lens.shape) == (batch, n_q):
            lengths = valid_lens[:, :, None]
        else:
            raise ValueError("valid_lens must be (batch,) or (batch, n_queries)")
        if lengths.max() > n_k:
            raise ValueError("length too long")
        valid = (torch.arange(n_k)[None, None, :] < lengths).expand(batch, n_q, n_k)
    scores = torch.where(valid, X, float("-inf"))
    expd = torch.exp(scores - X.max())
    probs = expd / expd.sum(dim=-1, keepdim=True)
    return torch.where(valid, probs, 0.0)
