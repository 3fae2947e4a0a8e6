"""SQL over the tables of a lake, named queries, and definitions of the tables."""
