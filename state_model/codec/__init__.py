"""Readers and writers of Kafka's encodings, which schemas put together."""
