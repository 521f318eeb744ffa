"""Who runs next on the engine's one thread, and how what is asked for gets there and back."""
