"""The tiles lab: softmax worked out tile by tile, and the traffic that saves."""
