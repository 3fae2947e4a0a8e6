"""Rules of the audit on the records of streams groups (streams-group §11)."""
