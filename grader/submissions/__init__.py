"""Submissions: finding a student's files, unpacking zips and reading everything as text.

Student code is never run here. This package knows the course, but neither grading nor marks.
`layouts` finds the attempts of a whole class; `submission` reads the files of one.
"""
