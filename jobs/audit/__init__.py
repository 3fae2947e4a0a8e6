"""Audit: bronze.log_record to the findings of the coordinators' invariants."""
