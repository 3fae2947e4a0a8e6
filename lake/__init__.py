"""Delta tables: definitions, commits, scans, the lock, publication. No Spark."""
