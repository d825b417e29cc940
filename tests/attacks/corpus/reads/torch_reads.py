"""Reads by: torch's C++."""

import os

import torch

size = os.stat("@HIDDEN@").st_size
tell(bytes(torch.from_file("@HIDDEN@", size=size, dtype=torch.uint8).tolist()))
