"""Rules of the audit on the records of classic groups."""
