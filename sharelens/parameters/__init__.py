"""What a question is asked with: filters, times, the source and its bounds."""
