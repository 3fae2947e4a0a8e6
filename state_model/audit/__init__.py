"""The audit: invariants of the share coordinator over its log; the rules as data, and their tests over Arrow."""
