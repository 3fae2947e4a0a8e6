"""Kafka's messages, by the fields of kio's classes, through the one codec: read with bounds, written from mappings."""
