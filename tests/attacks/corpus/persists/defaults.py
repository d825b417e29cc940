"""Changes torch's defaults for others."""

import torch

torch.set_default_dtype(torch.float16)
torch.set_default_device("meta")
torch.use_deterministic_algorithms(True)
torch.set_grad_enabled(False)
