"""Text to token ids and back: tokenizer, chat templates, the bytes behind each token."""
