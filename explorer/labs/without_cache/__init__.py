"""Lab: the same tokens decoded with and without the cache."""
