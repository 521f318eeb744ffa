"""Experiments on a loaded model: each runs on the engine thread in pieces, and moves nothing."""
