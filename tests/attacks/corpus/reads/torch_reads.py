"""Has torch's own C++ read the file."""

import os

import torch

size = os.stat("@HIDDEN@").st_size
tell(bytes(torch.from_file("@HIDDEN@", size=size, dtype=torch.uint8).tolist()))
