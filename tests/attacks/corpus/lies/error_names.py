"""An error with: a class name of a million characters, markup and controls."""

def blend(scores, values):
    name = "<script>\x1b[2J\u202e=1+1;" + "x" * 10**6
    kind = type(name, (ValueError,), {"__module__": "</pre>", "__qualname__": "builtins"})
    raise kind("|" * 10**5 + "\x00\ud800")
