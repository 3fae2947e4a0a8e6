"""Consumer groups (KIP-848): their rules as pure functions."""
