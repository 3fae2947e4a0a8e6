"""The command line and the questions: what the tables or a copied log say about share groups."""

__version__ = "0.1.0"
