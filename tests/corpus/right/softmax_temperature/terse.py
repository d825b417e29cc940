"""Softmax and temperature, one line each."""


def tempered_softmax(scores, temperature):
    if temperature <= 0:
        raise ValueError(f"{temperature=}")
    return scores.div(temperature).softmax(-1)


def entropy(weights):
    return -(weights * (weights + (weights == 0)).log()).sum(-1)


def variance_of_products(queries, keys):
    return (queries.unsqueeze(-2) @ keys.unsqueeze(-1)).flatten(-3).var(-1, unbiased=False)


def scale(scores, d_key):
    return scores.mul(d_key**-0.5)
