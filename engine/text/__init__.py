"""Text and tokens: a chat through its template, and what in it a person typed."""
