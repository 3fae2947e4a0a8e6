"""The audit: invariants of the share coordinator over its log; each rule as a function, and all of them over Arrow."""
