"""What each command of the page does."""
