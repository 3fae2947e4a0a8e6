"""Authentication of clients: SASL, and the names in their certificates."""
