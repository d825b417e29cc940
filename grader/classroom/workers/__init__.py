"""The engines that grade a class's jobs: warm processes on this machine or on a Dask cluster.

They take jobs and return answers. They know neither the ledger nor students beyond a submission.
"""
