"""Configuration in Kafka's names: of the broker, of topics, of groups."""
