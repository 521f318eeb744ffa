"""Steps that were recorded earlier."""
