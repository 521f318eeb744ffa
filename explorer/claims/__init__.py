"""What is often said about the decode loop: each claim computed again, with a verdict and where to see it."""
