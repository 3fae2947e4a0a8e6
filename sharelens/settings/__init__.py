"""Settings of groups and brokers, end offsets, topic names and suppressions, as files that the caller gives."""
