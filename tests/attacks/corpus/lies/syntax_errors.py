"""An error with: an impossible place in the syntax."""

def blend(scores, values):
    error = SyntaxError("here", ("blend.py", 10**18, -(10**18), "x" * 10**6))
    if scores.any():
        error.filename, error.lineno, error.offset, error.msg = "blend.py", 2.5, "no", None
    raise error
