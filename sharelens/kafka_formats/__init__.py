"""Text and message formats of Kafka that clients, broker and logs share."""
