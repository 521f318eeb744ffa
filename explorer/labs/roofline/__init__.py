"""The floor: how fast a decode step could be, what it is made of, and what moves it."""
