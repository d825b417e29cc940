"""The encoding that the student's code gives to the first positions."""


def draw(module, trained):
    """Draw a row for each position, and a column for each number that encodes it."""
    yield {
        "title": "The encoding of each position",
        "says": "A row is a position, a column one of the numbers that encode it, with the base "
        "200. Blue is positive, orange negative. Columns to the right turn more slowly.",
        "weights": module.sinusoidal(16, 24, base=200.0),  # (n_positions, d_model)
    }
