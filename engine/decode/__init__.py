"""From logits to the next token: sampling, the record of a step, stop rules, and a session's state."""
