"""The untrusted side of the boundary: the zygote, and the workers that it forks.

Student code can read its imports, so none may be from `sandbox/host/` or outside `sandbox/`.
"""
