"""Lab: one sweep over the prompt against one turn per new token."""
