"""A class: its roster, its attempts, its ledger, the runs that grade it and its pages.

Everything stored goes through `ledger`. Knows nothing of commands, terminals or suites.
"""
