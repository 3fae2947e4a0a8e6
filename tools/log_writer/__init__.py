"""Writes logs as a broker leaves them, for tests and benches: record batches, segments, log directories."""
