"""Benchmarks: logs of any size, and the same work done in several ways side by side."""
