"""The numbers of a session's records, each computed a second time: what to compute and how far it may differ."""
