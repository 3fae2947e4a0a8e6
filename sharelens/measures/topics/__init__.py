"""User topics by their batch headers: ends, offsets without a record, times."""
