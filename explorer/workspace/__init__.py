"""What one browser tab works on: its runs, their recipes, its settings."""
