"""Experiments on the live engine: races, sweeps, and the checks that hold it against stock transformers."""
