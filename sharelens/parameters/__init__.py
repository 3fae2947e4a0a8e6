"""Values that a question is asked with: filters and times."""
