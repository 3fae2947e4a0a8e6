"""Compiled loops of the audit: they walk the records of a state partition and note violations as rows of numbers."""
