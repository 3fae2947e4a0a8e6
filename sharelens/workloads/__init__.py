"""Workloads: real clients under load, with a journal of their events."""
