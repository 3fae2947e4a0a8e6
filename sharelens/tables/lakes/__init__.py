"""The tables of a lake at its published cut."""
