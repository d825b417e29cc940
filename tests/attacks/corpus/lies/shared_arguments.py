"""Writes into its arguments."""

def blend(scores, values):
    import torch

    with torch.no_grad():
        values.fill_(7.0)
        scores.resize_(0)
        values.data.set_(values.new_zeros(3, 3))
    return scores.new_zeros(1, 3)
