"""From a name to a loaded model: where it is found, whether it fits, what is known of it."""
