"""The command line and the questions that sharelens answers."""

__version__ = "0.1.0"
