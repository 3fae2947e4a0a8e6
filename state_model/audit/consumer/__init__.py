"""Rules of the audit on the records of consumer groups (KIP-848)."""
