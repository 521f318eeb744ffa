"""The library: what the cache takes, for any model and any crowd, and what is in it."""
