"""The decode engine: a real model, stepped one token at a time, with every number on record.

It knows nothing of any user interface. What leaves it is frozen and plain (records.py). Each folder says in its own
first line what is in it; docs/architecture.md has the order in which they may import each other.
"""
