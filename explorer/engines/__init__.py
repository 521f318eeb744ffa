"""The running engines, and the only way by which pages reach them."""
