"""What share-group state is: records, state batches, the coordinator machine. No I/O, no Spark."""
