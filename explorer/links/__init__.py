"""Deep links: a session as an address, written and read."""
