"""Histories of share partitions as numbers, and what measures derive from them: lives, outcomes, settled offsets."""
