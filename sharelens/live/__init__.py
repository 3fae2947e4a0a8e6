"""A running cluster as a source: its logs are copied, its coordinators compared, single batches sampled."""
