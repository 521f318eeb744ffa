"""A class of students on one server: `python -m benchmarks.load`.

A real server in one process, clients that open its page and speak the live line in another. Nothing leaves 127.0.0.1,
and every run ends by itself. A press is due when it is due, and its wait counts from there: clients that press only
once the last answer has come would ask a slow server less.
"""
