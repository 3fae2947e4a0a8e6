"""Entries of all logs in the order of time, and what changed between two moments."""
