"""The terms of the field in plain English: one file of them, its reader, and a page with a search."""
