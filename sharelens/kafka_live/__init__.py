"""A running cluster as one more copy of its logs: record batches by Fetch, byte for byte as segments hold them."""
