"""Settings of groups and brokers over time, each with its origin."""
