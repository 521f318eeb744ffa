"""What `make` calls: set-up and finding a browser. Nothing here is part of the app."""
