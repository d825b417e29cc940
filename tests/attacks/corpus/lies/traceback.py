"""An error with: files and lines that do not exist."""

def blend(scores, values):
    text = "\n" * 100_000 + "def fails():\n    raise ValueError('far below')\n"
    space = {}
    exec(compile(text, "blend.py", "exec"), space)
    exec(compile(text, "@HIDDEN@", "exec"), space) if scores.any() else None
    space["fails"]()
