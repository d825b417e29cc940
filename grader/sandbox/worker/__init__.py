"""The untrusted side of the boundary: the zygote, and the workers that it forks.

Student code can read its imports: none may be of `sandbox/host/` or from outside `sandbox/`.
"""
