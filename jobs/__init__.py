"""Spark jobs: ingest, decode, replay, run."""
