"""Running a student's code in a process of its own: the wire, the worker, and the host's side."""
