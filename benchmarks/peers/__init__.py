"""Parts of `benchmarks/peers.py` and `benchmarks/scale.py`."""
