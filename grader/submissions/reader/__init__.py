"""Readers: confined processes that parse what students handed in, and the messages they answer.

The process that grades a class parses none of it. `host` asks a reader; what a reader does is in
`grader.submissions.reader_process`.
"""
