"""Measures: what the histories say about a share group's work. Arrow tables in, Arrow tables out; no I/O, no Spark."""
