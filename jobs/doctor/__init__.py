"""Checks of what a run requires: this machine, and a cluster."""
