"""Lessons that lead through the live Step page: read from Markdown, checked, and handed to the page's player."""
