"""Ingest: log directories to bronze."""
