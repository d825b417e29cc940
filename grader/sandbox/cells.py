"""How a notebook's code crosses as one text: each cell behind a line that names it."""

NOTEBOOK = ".ipynb"
CELL = "# %% notebook cell "  # with its number, from 1
BROKEN = "__broken_cells__"  # in a notebook's module: what was wrong with which cell
