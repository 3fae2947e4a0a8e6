"""Logs on disk: record batches, segments and their indexes, recovery, the log directory and the catalogue of topics."""
