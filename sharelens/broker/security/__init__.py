"""Security of the broker's clients."""
