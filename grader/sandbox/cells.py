"""The names and marks that let a notebook's cells cross the boundary as one text."""

NOTEBOOK = ".ipynb"
CELL = "# %% notebook cell "  # the line before each cell; its number follows, from 1
BROKEN = "__broken_cells__"  # attribute of a notebook's module: one message for each failed cell
