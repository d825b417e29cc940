"""Types and errors with names of markup, far too long."""

kind = type("<script>alert(1)</script>" * 1000, (Exception,), {})


def blend(scores, values):
    raise kind("\x1b[2J\x1b]0;owned\x07=HYPERLINK(1)<img src=x onerror=alert(1)>" * 1000)
