"""What answers the requests of clients: one module for each family of APIs."""
