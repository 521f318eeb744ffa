"""One server for many people: limits, places, leases, health, numbers for the host."""
