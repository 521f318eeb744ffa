"""The same arithmetic as transformers' modules, as fast as this machine's memory allows."""
