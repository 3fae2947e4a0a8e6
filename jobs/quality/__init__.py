"""The quality gates: expectations of every table, checked by Great Expectations before a cut is published."""
