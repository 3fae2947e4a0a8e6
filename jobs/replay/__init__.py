"""Replay: silver records to the gold state tables."""
