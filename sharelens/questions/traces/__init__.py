"""The life of one record."""
