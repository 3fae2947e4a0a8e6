"""Workloads: real clients under load, with a journal of what every one of them saw."""
