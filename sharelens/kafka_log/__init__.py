"""Kafka log directories: layout, record batches, the union of copies, writing segments."""
