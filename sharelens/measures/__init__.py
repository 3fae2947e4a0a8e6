"""Measures of share groups, computed from the histories. Arrow tables in, Arrow tables out; no I/O, no Spark."""
