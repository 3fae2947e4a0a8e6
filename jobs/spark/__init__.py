"""Executors of Spark: what they are sent, and the code that their workers import."""
