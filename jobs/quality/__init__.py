"""The quality gates: what is expected of every table, judged by Great Expectations before a cut is published."""
