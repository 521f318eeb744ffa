"""What travels between a browser tab and Python: commands up, frames of bytes down."""
