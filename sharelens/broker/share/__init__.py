"""Share partitions as their leader keeps them: acquisition, locks, acknowledgement, share sessions, dead letters."""
