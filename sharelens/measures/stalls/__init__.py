"""The first incomplete offset of share partitions over time, and stalls."""
