"""Latency and attempts: ages of settled offsets, and tallies of them that add up."""
