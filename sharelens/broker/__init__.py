"""A single-node Kafka broker for share groups: real wire protocol, real log segments, one process, no JVM."""
