"""The report: one HTML file about share groups that needs nothing but a browser."""
