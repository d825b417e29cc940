"""Print the score of every test cell of every student, from the gradebook in this folder.

Run by nbgrader's own interpreter.
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
