"""Arithmetic of offset ranges and of share partitions as numbers."""
