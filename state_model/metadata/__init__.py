"""Records of `__cluster_metadata` (KRaft): schemas, decoding without secrets, and the history that they make."""
