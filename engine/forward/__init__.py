"""One forward pass: what the model is given beside its tokens, and what it does with them."""
