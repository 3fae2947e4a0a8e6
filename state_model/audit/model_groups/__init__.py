"""Rules of the audit that streams groups and consumer groups share, and the history of records that they see."""
