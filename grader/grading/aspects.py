"""Aspects: the subjects of cases."""

from __future__ import annotations

from dataclasses import dataclass

# Aspects of many exercises, the most telling first: the name, and the words for it in a report if
# no known mistake explains its wrong answers. A suite can add aspects of its own.
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
    "devices": "the module on another device",
    "writes": "arguments that must stay as they are",
    "refusals": "calls that must be refused",
}
# Aspects in which the same mistake may have several results. "writes" is not among them: code that
# leaves its arguments alone does not have a mistake that writes into them.
EDGES = frozenset(
    (
        "lookup",
        "extreme scores",
        "length 0",
        "single",
        "views",
        "dtype",
        "devices",
        "refusals",
        "layers",
    )
)


@dataclass(frozen=True)
class Aspect:
    """The subject of a case: its name, its words in a report, and whether it is an edge.

    At an edge, the same mistake may have several results.
    """

    name: str
    says: str
    is_edge: bool = False

    @property
    def rank(self) -> int:
        """The place in the order of aspects; those of an exercise's own come last."""
        known = list(ASPECTS)
        return known.index(self.name) if self.name in known else len(known)


def aspect_of(name: str) -> Aspect:
    """Return the aspect of `ASPECTS` with this name; raises `ValueError`."""
    if name not in ASPECTS:
        known = ", ".join(ASPECTS)
        says = f"there is no aspect {name!r}; there are: {known}; or make one: Aspect(name, says)"
        raise ValueError(says)
    return Aspect(name, ASPECTS[name], name in EDGES)
