"""The model of share-group state: records, state batches, the coordinator machine. No I/O, no Spark."""
