# The worked example of the task, run on your own code.
import grader

encoding = sinusoidal(4, 4, base=100.0)  # (context_length, d_model)
grader.show(encoding, title="encoding", axes=("position", "feature"))
