"""Print the score of every student in every test cell, from the gradebook in this folder.

It is run by the interpreter of nbgrader's environment.
"""

import json

from nbgrader.api import Gradebook

with Gradebook("sqlite:///gradebook.db") as gradebook:
    print(
        json.dumps(
            [
                (submission.student.id, grade.cell.name, grade.score)
                for submission in gradebook.assignment_submissions("course")
                for notebook in submission.notebooks
                for grade in notebook.grades
            ]
        )
    )
