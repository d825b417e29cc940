"""Probes: calls whose answers tell one mistake from another."""

from grader.probing import probe

AXES = ("batch item", "number")  # of an output, in the singular


@probe("values")
def ordinary(student, rng):
    """TODO: what this call asks, as a noun phrase."""
    return student.additive_attention(rng.randn(3, 5))


@probe("single")
def one_item(student, rng):
    """One batch item."""
    return student.additive_attention(rng.randn(1, 12))
