"""What probes are about."""

from __future__ import annotations

# What a probe can be about, the most telling first: its name, and what is said of it if no known
# mistake explains what comes out.
ASPECTS = {
    "values": "the values at ordinary sizes",
    "square": "the values where all sizes are equal",
    "lookup": "what `lookup` returns",
    "post-norm": "the values with post-norm",
    "leading axes": "inputs with other leading axes",
    "lengths per query": "the values with a length for each query",
    "no lengths": "the values without lengths",
    "options": "the values with other options",
    "layers": "the layers and their parameters",
    "gradient": "the gradients",
    "training": "the values in training mode",
    "extreme scores": "the values for very large numbers",
    "length 0": "rows with nothing to attend to",
    "single": "single tokens, queries, heads or batch items",
    "views": "inputs that are not contiguous",
    "dtype": "inputs of other dtypes",
    "writes": "the arguments, which must stay as they are,",
    "refusals": "calls that must be refused",
}
# Aspects in which the same mistake may come out in several ways.
EDGES = frozenset(
    (
        "lookup",
        "extreme scores",
        "length 0",
        "single",
        "views",
        "dtype",
        "writes",
        "refusals",
        "layers",
    )
)
