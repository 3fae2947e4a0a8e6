"""The audit of a lake or of log directories as answers."""
