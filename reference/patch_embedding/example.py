# The worked example of the task, run on your own code.
import torch

import grader

images = torch.arange(48.0).view(1, 2, 4, 6)
grader.show(patches(images, 2), title="patches(images, 2)", axes=("patch", "number"))
