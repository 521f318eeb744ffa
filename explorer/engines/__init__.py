"""The running engines, and the only door through which pages reach them."""
