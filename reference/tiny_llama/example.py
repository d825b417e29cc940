# The worked example of the task, run on your own code.
import torch

import grader

model = TinyLlama(5, 4, 2, 1, 2, 8, 0.0).double().eval()
for i, (_, each) in enumerate(sorted(model.named_parameters())):
    each.data.copy_((torch.arange(each.numel()) + 100 * i).double().sin().view(each.shape))
written = continue_text(model, torch.tensor([4]), torch.zeros(5), temperature=0)
grader.show(written.double()[None], title="written after 4")
grader.show(model(torch.tensor([[0, 1, 2]]))[0][0], title="logits")
