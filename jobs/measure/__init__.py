"""Measure: gold histories to the gold measures."""
