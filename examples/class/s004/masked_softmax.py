import torch


def masked_softmax(X, valid_lens):
    if valid_lens is None:
        return X.softmax(-1)

    B, N, M = X.shape
    if valid_lens.shape == (B,):
        valid_lens = valid_lens.reshape(B, 1)
    elif valid_lens.shape != (B, N):
        raise ValueError(f"cannot use lengths of shape {valid_lens.shape}")
    if bool((valid_lens > M).any()):
        raise ValueError("length too long")

    ok = torch.arange(M) < valid_lens[..., None]
    S = X.masked_fill(~ok, -torch.inf)
    # a row without a valid key would be all -inf, make it all 0 first
    empty = ~ok.any(dim=-1, keepdim=True)
    S = S.masked_fill(empty, 0.0)
    return S.softmax(-1) * ok
