"""One module a page: what is on screen and in what order."""
