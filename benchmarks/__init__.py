"""This machine against the budgets: `make bench`, or `python -m benchmarks`.

Every row is a ratio of two things measured in the same run, turn by turn, so that a busy moment hits both. The
fact people get wrong is comparing two runs: on a shared machine the same code varies by a factor of two.
"""
