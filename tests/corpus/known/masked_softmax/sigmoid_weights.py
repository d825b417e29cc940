# mistake: sigmoid_weights
import torch


def masked_softmax(X, valid_lens):
    if valid_lens is None:
        return torch.sigmoid(X)
    if valid_lens.shape not in (X.shape[:1], X.shape[:2]):
        raise ValueError("wrong valid_lens")
    if (valid_lens > X.shape[2]).any():
        raise ValueError("wrong valid_lens")
    lengths = valid_lens.reshape(X.shape[0], -1, 1)
    mask = torch.arange(X.shape[2]) < lengths
    return torch.sigmoid(X) * mask
