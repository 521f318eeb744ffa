"""What is measured of this process and this machine, and published hardware beside it."""
