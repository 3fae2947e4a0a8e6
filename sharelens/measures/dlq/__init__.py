"""Dead letters matched with archived records, and the causes that they state."""
