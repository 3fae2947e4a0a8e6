"""The rules of state_model over whole Arrow arrays."""
