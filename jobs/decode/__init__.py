"""Decode: bronze records to silver rows."""
