"""The command line and the questions: what the tables or a copied log say about share groups."""

from sharelens.shadowing import check_packages

__version__ = "0.1.0"

check_packages()
