# Selbstaufmerksamkeit ohne gelernte Gewichte
import torch
from torch import Tensor


def scores_by_loops(inputs: Tensor) -> Tensor:
    anzahl = len(inputs)
    tabelle = inputs.new_zeros((anzahl, anzahl))
    for zeile, frage in enumerate(inputs):
        for spalte, schluessel in enumerate(inputs):
            tabelle[zeile, spalte] = (frage * schluessel).sum()
    return tabelle


def scores_by_product(inputs: Tensor) -> Tensor:
    return torch.matmul(inputs, torch.swapaxes(inputs, -1, -2))


def normalise(scores: Tensor) -> Tensor:
    summe = scores.sum(dim=-1, keepdim=True)
    assert summe.shape[:-1] == scores.shape[:-1]
    return scores / summe


def softmax_naive(scores: Tensor) -> Tensor:
    e = scores.exp()
    return e / e.sum(dim=-1, keepdim=True)


def softmax_stable(scores: Tensor) -> Tensor:
    # bfloat16 wird in float32 gerechnet und erst am Ende gerundet
    genau = scores.float() if scores.dtype == torch.bfloat16 else scores
    groesster, _ = genau.max(dim=-1, keepdim=True)
    return softmax_naive(genau.sub(groesster)).to(scores.dtype)


def context_vectors(inputs: Tensor) -> Tensor:
    return softmax_stable(scores_by_product(inputs)) @ inputs
