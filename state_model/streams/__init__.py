"""Streams groups (KIP-1071) as Kafka 4.3 writes them: values, records and state as pure functions."""
