"""Record data sets of consumer groups: a real Kafka, real clients, and the Admin client's answers at moments."""
