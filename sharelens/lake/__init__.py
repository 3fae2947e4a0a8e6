"""The lake: Delta tables, their definitions, commits, scans, lock and publication. No Spark."""
