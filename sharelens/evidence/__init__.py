"""Evidence and its completeness: covered offset ranges, log time, losses, incarnations. No Spark, no I/O."""
