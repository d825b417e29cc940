"""attention-grader: a course on attention and Transformers in PyTorch that grades itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grader.jupyter import NotebookVerdict, Picture

__version__ = "0.2.0"


# What notebooks use; each imports what it needs when it is called, so that `grader` starts at once.


def load_ipython_extension(shell: Any) -> None:
    """Make `%%check` and `%%example` known to IPython, which calls this for `%load_ext grader`."""
    from grader.jupyter import load_extension  # noqa: PLC0415

    load_extension(shell)


def check(name: str, *, seed: int | None = None) -> NotebookVerdict:
    """Grade what a notebook defines for the exercise `name`; the last definition counts."""
    from grader import jupyter  # noqa: PLC0415

    return jupyter.check(name, seed=seed)


def answer(name: str, given: object, *, question: int = 1) -> None:
    """Print whether an answer to a question of the exercise `name` is right; it earns no points."""
    from grader import jupyter  # noqa: PLC0415

    jupyter.answer(name, given, question=question)


def show(
    weights: Any,
    tokens: Sequence[str] = (),
    *,
    title: str = "weights",
    axes: tuple[str, str] | None = None,
) -> Picture:
    """Draw attention weights, (n_queries, n_keys) or (heads, n_queries, n_keys).

    `tokens` label rows and columns, `title` names a single matrix, and `axes` says what rows and
    columns are. `show(…).save("weights.svg")` writes a file.
    """
    from grader import jupyter  # noqa: PLC0415

    return jupyter.show(weights, tokens, title=title, axes=axes)


def tour() -> NotebookVerdict:
    """Lead a sentence through the exercises of a notebook and of the files beside it."""
    from grader import jupyter  # noqa: PLC0415

    return jupyter.tour()
