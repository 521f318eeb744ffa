"""This machine against the budgets: `make bench`, or `python -m benchmarks`.

Every row is a ratio of two things measured in the same run, turn by turn, so that a busy moment hits both. Two runs
cannot be compared: on a shared machine the same code varies by a factor of two.
"""
