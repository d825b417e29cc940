"""Answers with tensors whose bytes do not fit the shape."""

import os


def blend(scores, values):
    try:
        from grader.sandbox import wire

        for shape in ([-1], [2**40, 2**40], [0] * 99, [4]):
            os.write(3, wire.frame(wire.Reply(3, value=wire.WireTensor("float64", shape, b"x"))))
    except ImportError:
        pass
    return values.new_zeros(scores.shape[0], values.shape[1])
