"""The command line and the questions about share groups, answered from tables or from a copied log."""

from sharelens.shadowing import check_packages

__version__ = "0.1.0"

check_packages()
