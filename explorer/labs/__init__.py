"""The labs: pages that put a computed price beside a measured one. catalogue.py lists them."""
