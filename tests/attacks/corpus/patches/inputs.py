"""Makes every random input zero."""

import torch

torch.randn = torch.rand = lambda *size, **kwargs: torch.zeros(*[s for s in size])
torch.normal = torch.Tensor.normal_ = torch.Tensor.uniform_ = lambda x, *a, **k: x.zero_()
