"""Histories of groups by the group coordinator's log: share groups and streams groups. No I/O, no Spark."""
