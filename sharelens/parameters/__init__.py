"""Parameters of questions: filters and times."""
