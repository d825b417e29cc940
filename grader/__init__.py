"""attention-grader: a course on attention and Transformers in PyTorch that grades itself."""

__version__ = "0.1.0"
