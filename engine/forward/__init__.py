"""One forward pass of the model over many sessions, and the KV cache it reads and extends."""
