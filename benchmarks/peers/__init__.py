"""The modules that `benchmarks/peers.py` and `benchmarks/scale.py` use."""
