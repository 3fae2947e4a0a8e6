"""What is known and how completely: covered offset ranges, log time, losses, incarnations. No Spark, no I/O."""
