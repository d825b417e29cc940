"""attention-grader: a course on attention and Transformers in PyTorch that grades itself."""

__version__ = "0.2.0"
