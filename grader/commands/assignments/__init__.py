"""Assignment notebooks of other graders → the files of exercises.

`formats` knows how a grader marks cells, and makes `Question`s of them. The other modules turn a
question into files, whatever it was marked with. No code of a notebook runs.
"""
